package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/taskd-go/task/job"
)

// ErrDeferred is in what a push to the sync driver returns when the job asked to come again later.
var ErrDeferred = errors.New("queue: the job was deferred, and the sync driver does not wait")

// maxDepth bounds jobs that push jobs that push jobs.
const maxDepth = 16

// A syncDriver runs jobs inside Push.
type syncDriver struct {
	*options
	handlers *job.Registry
}

// NewSync is the sync driver: a push runs the job before it returns, in the caller's goroutine and under its context,
// and stores nothing. For tests, and for programs without a database.
//
// A job that fails runs again at once, up to its tries; Delay, Backoff, Priority, Unique and the queue's name count for
// nothing. When they are used up its Failed method is called, and the push returns the last error, a *job.DeadError. A
// job that is discarded or skipped is no error; one that is deferred is ErrDeferred and has not run. PushMany ends with
// the first job that cannot be done and returns the ids of those before it. Layers and time limits are around a job as
// in a worker. Jobs that push jobs may be 16 deep. A transaction is not looked at.
//
// What needs a database returns ErrSync; counts are 0 and lists are empty.
func NewSync(reg *job.Registry, opts ...Option) *Queue {
	q := &Queue{options: newOptions(opts)}
	if q.runner == nil {
		q.runner = &job.Runner{}
	}
	q.sync = &syncDriver{options: &q.options, handlers: reg}
	return q
}

// SyncRunner is the Runner of the sync driver: its time limit, layers, log and events.
func SyncRunner(r *job.Runner) Option { return func(o *options) { o.runner = r } }

type depthKey struct{}

func (s *syncDriver) run(ctx context.Context, p *push) error {
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth >= maxDepth {
		return fmt.Errorf("queue: jobs push jobs more than %d deep, the last is %s", maxDepth, p.envelope.JobType)
	}
	ctx = context.WithValue(ctx, depthKey{}, depth+1)
	handler, _ := s.handlers.Get(p.envelope.JobType)
	own, _ := handler.(supervised)
	runner := s.runnerFor(p, own)
	for e := p.envelope; ; {
		d := runner.Decide(ctx, handler, e)
		switch d.Outcome {
		case job.Requeued:
			if d.Abandoned != nil {
				<-d.Abandoned
			}
			e = d.Envelope
			continue
		case job.Dead:
			s.buried(ctx, own, d)
			return &job.DeadError{Reason: d.Reason, Err: d.Err}
		case job.Deferred, job.Unsettled:
			if err := ctx.Err(); err != nil {
				return err
			}
			return errors.Join(ErrDeferred, d.Err)
		}
		return nil
	}
}

func (s *syncDriver) runnerFor(p *push, own supervised) *job.Runner {
	runner := *s.options.runner
	if runner.Policy == (job.RetryPolicy{}) {
		runner.Policy = job.RetryPolicy{MaxAttempts: job.Unlimited, Multiplier: 1}
	}
	if runner.Logger == nil {
		runner.Logger = s.logger
	}
	if p.timeout != nil && *p.timeout != 0 {
		runner.Timeout = *p.timeout
	}
	if own != nil {
		runner.Middleware = slices.Concat(runner.Middleware, own.layers(p.envelope))
	}
	return &runner
}

func (s *syncDriver) buried(ctx context.Context, own supervised, d job.Decision) {
	if own == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookLimit)
	defer cancel()
	runHook(ctx, own, verdict{envelope: d.Envelope, reason: d.Reason, err: d.Err}, &Queue{options: *s.options})
}

func (s *syncDriver) runMany(ctx context.Context, pushes []*push) (ids []string, err error) {
	for _, p := range pushes {
		if err := s.run(ctx, p); err != nil {
			return ids, err
		}
		ids = append(ids, p.envelope.JobID)
	}
	return ids, nil
}
