package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of cases of queues.
const (
	kindPush     kind = "push"     // jobs, one by one
	kindPushMany kind = "pushmany" // jobs in batches of queueBatch
	kindWork     kind = "work"     // jobs that wait, with one worker
	kindPickUp   kind = "pickup"   // a job for an idle worker of another process
)

var (
	pushCase     = benchCase{kindPush, 64, 1}
	push8Case    = benchCase{kindPush, 64, 8}
	pushManyCase = benchCase{kindPushMany, 64, 1}
	workCase     = benchCase{kindWork, 64, 1}
	pickUpCase   = benchCase{kindPickUp, 64, 1}
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
func (p queuePlan) run(ctx context.Context, field runningQueues, progress io.Writer) (results, error) {
	res := results{samples: map[key][]sample{}, idle: notMeasured}
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d: push, work\n", round+1, p.rounds)
		for i := range field {
			q := field[(i+round)%len(field)]
			for _, c := range []benchCase{pushCase, push8Case, pushManyCase, workCase} {
				if !p.only.MatchString(c.String()) {
					continue
				}
				s, ok, err := p.measure(ctx, q, c)
				if err != nil {
					return res, fmt.Errorf("%s: %s: %w", c, q.name, err)
				}
				if ok {
					res.add(q, c, s)
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
func (p queuePlan) measure(ctx context.Context, q *runningQueue, c benchCase) (sample, bool, error) {
	if c == workCase {
		s, err := p.work(ctx, q)
		return s, true, err
	}
	return p.push(ctx, q, c)
}

func (r results) add(q *runningQueue, c benchCase, s sample) {
	k := key{q.name, c}
	r.samples[k] = append(r.samples[k], s)
}

// push is a turn of pushing.
func (p queuePlan) push(ctx context.Context, q *runningQueue, c benchCase) (sample, bool, error) {
	if err := q.clear(ctx); err != nil {
		return sample{}, false, err
	}
	var n atomic.Int64
	s := session{caller: func(int, benchCase, []byte) (func() error, error) {
		switch {
		case c.kind == kindPush:
			return func() error { return q.push(ctx, int(n.Add(1))) }, nil
		case q.pushMany != nil:
			return func() error { return q.pushMany(ctx, int(n.Add(queueBatch)), queueBatch) }, nil
		}
		return nil, nil
	}}
	return turn(s, c, nil, p.turn)
}

// work is a turn of working off, from the first job's begin to the last one's end.
func (p queuePlan) work(ctx context.Context, q *runningQueue) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceWithQueues)
	defer cancel()
	n := max(int(float64(q.jobs)*p.share), 1)
	if err := q.clear(ctx); err != nil {
		return sample{}, err
	}
	if err := q.fill(ctx, n); err != nil {
		return sample{}, err
	}
	var began sync.Once
	var begin time.Time
	end, err := q.work(ctx, n, func() { began.Do(func() { begin = time.Now() }) })
	if err == nil {
		err = ctx.Err()
	}
	return sample{rate: float64(n) / end.Sub(begin).Seconds()}, err
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

// pickUp measures idle queues: each has its worker in another process, and is left alone between two jobs.
func (p queuePlan) pickUp(ctx context.Context, field runningQueues, progress io.Writer, res results) error {
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
			res.add(q, pickUpCase, sample{p50: quantile(took[i], 0.5), p95: quantile(took[i], 0.95)})
		}
	}
	return nil
}

// An idleWorker is another process that works a queue.
type idleWorker struct {
	q      *runningQueue
	cmd    *exec.Cmd
	end    io.Closer
	stamps io.ReadCloser
	pushed int
}

// startIdle returns when the worker has had a job.
func startIdle(ctx context.Context, q *runningQueue) (*idleWorker, error) {
	cmd, end, err := copyOf(q.name)
	if err != nil {
		return nil, err
	}
	defer cmd.ExtraFiles[0].Close()
	cmd.Env = append(cmd.Env, envPlace+"="+q.place)
	w := &idleWorker{q: q, cmd: cmd, end: end}
	if w.stamps, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		end.Close()
		return nil, err
	}
	if _, err := w.job(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// job is the time from a push to the begin of its job. Both read the machine's wall clock.
func (w *idleWorker) job(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	w.pushed++
	if err := w.q.push(ctx, w.pushed); err != nil {
		return 0, err
	}
	var stamp [8]byte
	if _, err := io.ReadFull(w.stamps, stamp[:]); err != nil {
		return 0, fmt.Errorf("the worker's process: %w", err)
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(stamp[:]))).Sub(begin.Round(0)), nil
}

func writeStamp(w io.Writer, t time.Time) {
	// Who cannot write has lost the program that reads, and ends with it.
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(t.UnixNano())))
}

func (w *idleWorker) stop() {
	w.end.Close()
	_ = w.cmd.Wait() // how it ends is of no interest
}
