package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/bench/internal/measure"
)

// The kinds of cases of queues.
const (
	kindPush     measure.Kind = "push"     // jobs, one by one
	kindPushMany measure.Kind = "pushmany" // jobs in batches of queueBatch
	kindWork     measure.Kind = "work"     // jobs that wait, with one worker
	kindPickUp   measure.Kind = "pickup"   // a job for an idle worker of another process
)

var (
	pushCase     = measure.Case{Kind: kindPush, Size: 64, Callers: 1}
	push8Case    = measure.Case{Kind: kindPush, Size: 64, Callers: 8}
	pushManyCase = measure.Case{Kind: kindPushMany, Size: 64, Callers: 1, Batch: queueBatch}
	workCase     = measure.Case{Kind: kindWork, Size: 64, Callers: 1}
	pickUpCase   = measure.Case{Kind: kindPickUp, Size: 64, Callers: 1}
)

// A queuePlan is what a run measures.
type queuePlan struct {
	only    *regexp.Regexp // names of cases
	rounds  int
	turn    time.Duration // of pushing
	share   float64       // of a contender's jobs that a turn of work has
	pickUps int           // in a round
}

// patienceWithQueues is how long a job of a turn may take.
const patienceWithQueues = 2 * time.Minute

// run gives every queue its turn in each round, starting with another one each time.
func (p queuePlan) run(ctx context.Context, field runningQueues, progress io.Writer) (measure.Results, error) {
	res := measure.Results{}
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d: push, work\n", round+1, p.rounds)
		for i := range field {
			q := field[(i+round)%len(field)]
			for _, c := range []measure.Case{pushCase, push8Case, pushManyCase, workCase} {
				if !p.only.MatchString(c.String()) {
					continue
				}
				s, ok, err := p.measure(ctx, q, c)
				if err != nil {
					return res, fmt.Errorf("%s: %s: %w", c, q.name, err)
				}
				if ok {
					res.Add(q.name, c, s)
				}
			}
		}
	}
	if !p.only.MatchString(pickUpCase.String()) {
		return res, nil
	}
	return res, p.pickUp(ctx, field, progress, res)
}

// measure is a turn; not ok: the queue has no such push.
func (p queuePlan) measure(ctx context.Context, q *runningQueue, c measure.Case) (measure.Sample, bool, error) {
	if c == workCase {
		s, err := p.work(ctx, q)
		return s, true, err
	}
	return p.push(ctx, q, c)
}

// push is a turn of pushing.
func (p queuePlan) push(ctx context.Context, q *runningQueue, c measure.Case) (measure.Sample, bool, error) {
	if err := q.clear(ctx); err != nil {
		return measure.Sample{}, false, err
	}
	var n atomic.Int64
	calls := func(int, measure.Case, []byte) (func() error, error) {
		switch {
		case c.Kind == kindPush:
			return func() error { return q.push(ctx, int(n.Add(1))) }, nil
		case q.pushMany != nil:
			return func() error { return q.pushMany(ctx, int(n.Add(queueBatch)), queueBatch) }, nil
		}
		return nil, nil
	}
	return measure.Turn(calls, c, nil, p.turn)
}

// work is a turn of working off, from the first job's begin to the last one's end.
func (p queuePlan) work(ctx context.Context, q *runningQueue) (measure.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceWithQueues)
	defer cancel()
	n := max(int(float64(q.jobs)*p.share), 1)
	if err := q.clear(ctx); err != nil {
		return measure.Sample{}, err
	}
	if err := q.fill(ctx, n); err != nil {
		return measure.Sample{}, err
	}
	var began sync.Once
	var begin time.Time
	end, err := q.work(ctx, n, func() { began.Do(func() { begin = time.Now() }) })
	if err == nil {
		err = ctx.Err()
	}
	return measure.Sample{Rate: float64(n) / end.Sub(begin).Seconds()}, err
}

// fill pushes n jobs, the quickest way that there is.
func (q *runningQueue) fill(ctx context.Context, n int) error {
	if q.pushMany != nil {
		for from := 0; from < n; from += queueBatch {
			if err := q.pushMany(ctx, from, min(queueBatch, n-from)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range n {
		if err := q.push(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// pickUp measures idle queues: each has its worker in another process, and is left alone between
// two jobs.
func (p queuePlan) pickUp(ctx context.Context, field runningQueues, progress io.Writer, res measure.Results) error {
	workers := make([]*idleWorker, len(field))
	for i, q := range field {
		if err := q.clear(ctx); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		w, err := startIdle(ctx, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		defer w.stop()
		workers[i] = w
	}
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d: pick-up\n", round+1, p.rounds)
		took := make([][]float64, len(field))
		for n := range p.pickUps {
			time.Sleep(400*time.Millisecond + rand.N(100*time.Millisecond)) // until all are idle, and in step with no poll
			for i := range field {
				at := (i + n) % len(field)
				d, err := workers[at].job(ctx)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", pickUpCase, field[at].name, err)
				}
				took[at] = append(took[at], float64(d.Microseconds()))
			}
		}
		for i, q := range field {
			res.Add(q.name, pickUpCase, measure.Sample{P50: measure.Quantile(took[i], 0.5),
				P95: measure.Quantile(took[i], 0.95)})
		}
	}
	return nil
}
