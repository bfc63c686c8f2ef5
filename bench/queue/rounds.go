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

// The kinds of cases.
const (
	kindPush     measure.Kind = "push"     // jobs, one by one
	kindPushMany measure.Kind = "pushmany" // jobs in batches of queueBatch
	kindWork     measure.Kind = "work"     // waiting jobs, for one worker
	kindPickUp   measure.Kind = "pickup"   // a job for an idle worker in another process
)

var (
	pushCase     = measure.Case{Kind: kindPush, Size: 64, Callers: 1}
	push8Case    = measure.Case{Kind: kindPush, Size: 64, Callers: 8}
	pushManyCase = measure.Case{Kind: kindPushMany, Size: 64, Callers: 1, Batch: batchSize}
	workCase     = measure.Case{Kind: kindWork, Size: 64, Callers: 1}
	pickUpCase   = measure.Case{Kind: kindPickUp, Size: 64, Callers: 1}
)

// A plan says what to measure.
type plan struct {
	only    *regexp.Regexp // which cases, by name
	rounds  int
	turn    time.Duration // of pushing
	share   float64       // part of a contender's jobs in one turn of work
	pickUps int           // in each round
}

// workTimeout is the limit for one turn of work.
const workTimeout = 2 * time.Minute

// run gives each queue a turn in each round. Each round starts with another queue.
func (p plan) run(ctx context.Context, selected runningQueues, progress io.Writer) (measure.Results, error) {
	res := measure.Results{}
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d: push, work\n", round+1, p.rounds)
		for i := range selected {
			q := selected[(i+round)%len(selected)]
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
	return res, p.pickUp(ctx, selected, progress, res)
}

// measure is one turn. ok is false if the queue has no batches.
func (p plan) measure(ctx context.Context, q *running, c measure.Case) (measure.Sample, bool, error) {
	if c == workCase {
		s, err := p.work(ctx, q)
		return s, true, err
	}
	return p.push(ctx, q, c)
}

// push is one turn of pushes.
func (p plan) push(ctx context.Context, q *running, c measure.Case) (measure.Sample, bool, error) {
	if err := q.clear(ctx); err != nil {
		return measure.Sample{}, false, err
	}
	var n atomic.Int64
	calls := func(int, measure.Case, []byte) (func() error, error) {
		switch {
		case c.Kind == kindPush:
			return func() error { return q.push(ctx, int(n.Add(1))) }, nil
		case q.pushMany != nil:
			return func() error { return q.pushMany(ctx, int(n.Add(batchSize)), batchSize) }, nil
		}
		return nil, nil
	}
	return measure.Turn(calls, c, nil, p.turn)
}

// work is one turn of work, from the start of the first job to the end of the last.
func (p plan) work(ctx context.Context, q *running) (measure.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
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

// fill pushes n jobs, in batches if possible.
func (q *running) fill(ctx context.Context, n int) error {
	if q.pushMany != nil {
		for from := 0; from < n; from += batchSize {
			if err := q.pushMany(ctx, from, min(batchSize, n-from)); err != nil {
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

// pickUp measures idle queues. Each has its worker in another process, and gets one job at a time.
func (p plan) pickUp(ctx context.Context, selected runningQueues, progress io.Writer, res measure.Results) error {
	workers := make([]*idleWorker, len(selected))
	for i, q := range selected {
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
		took := make([][]float64, len(selected))
		for n := range p.pickUps {
			time.Sleep(400*time.Millisecond + rand.N(100*time.Millisecond)) // idle again, and at random against polls
			for i := range selected {
				at := (i + n) % len(selected)
				d, err := workers[at].job(ctx)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", pickUpCase, selected[at].name, err)
				}
				took[at] = append(took[at], float64(d.Microseconds()))
			}
		}
		for i, q := range selected {
			res.Add(q.name, pickUpCase, measure.Sample{P50: measure.Quantile(took[i], 0.5),
				P95: measure.Quantile(took[i], 0.95)})
		}
	}
	return nil
}
