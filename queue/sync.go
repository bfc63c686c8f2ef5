package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// ErrDeferred is wrapped by the error of a push to a queue of NewSync whose job asked to run again
// later.
var ErrDeferred = errors.New("queue: the job was deferred, and the sync driver does not wait")

// maxDepth bounds jobs that push jobs that push jobs.
const maxDepth = 16

// NewSync returns a queue that stores nothing: a push runs the job with the handlers of reg, under
// the caller's context, and then returns. It is for tests, and for programs without a database.
//
// A failed job runs again at once, without a delay, until it has no attempts left. Then its Failed
// method is called, and the push returns the last error as a *job.DeadError. For a discarded or
// skipped job a push returns no error; for a job that asks to run again later it returns an error
// that wraps ErrDeferred. A push ignores Delay, Backoff, Priority, Unique, On and a transaction.
// PushMany stops at the first job that fails and returns the ids of the jobs before it. Layers and
// time limits apply as in a worker. Jobs may push jobs that push jobs, up to 16 deep.
//
// Counts returns zeros, and lists are empty. Other calls that need stored jobs, and a Worker, fail
// with ErrUnsupported.
func NewSync(reg *job.Registry, opts ...Option) *Queue {
	o := newOptions(opts)
	if o.runner == nil {
		o.runner = &job.Runner{}
	}
	q := New(syncStore{options: &o, handlers: reg}, opts...)
	return q
}

// SyncRunner sets the Runner of a queue of NewSync: its policy, time limit, layers, log and events.
// The Policy, if set, bounds the attempts too.
func SyncRunner(r *job.Runner) Option { return func(o *options) { o.runner = r } }

// A syncStore is the backend.Backend that runs jobs in place of storing them.
type syncStore struct {
	*options
	handlers *job.Registry
}

// Name implements backend.Backend.
func (syncStore) Name() string { return DriverSync }

// Can claims the options that Push accepts and ignores.
func (syncStore) Can() backend.Capabilities {
	return backend.Capabilities{Delay: true, Priority: true, Unique: true}
}

// Push runs the jobs, up to the first that cannot be done.
func (s syncStore) Push(ctx context.Context, messages []backend.Message) []backend.Pushed {
	pushed := make([]backend.Pushed, len(messages))
	var failed error
	for i := range messages {
		if failed == nil {
			failed = s.run(ctx, &messages[i])
		}
		if pushed[i].Err = failed; failed == nil {
			pushed[i].ID = messages[i].Envelope.JobID
		}
	}
	return pushed
}

// PushTx is Push, since nothing is stored that a transaction could undo.
func (s syncStore) PushTx(ctx context.Context, _ any, messages []backend.Message) []backend.Pushed {
	return s.Push(ctx, messages)
}

// Open implements backend.Backend.
func (s syncStore) Open(context.Context, backend.Session) (backend.Consumer, error) {
	return nil, s.unsupported("jobs for a worker")
}

func (s syncStore) unsupported(what string) error { return backend.Unsupported(s.Name(), what) }

type depthKey struct{}

func (s syncStore) run(ctx context.Context, m *backend.Message) error {
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth >= maxDepth {
		return fmt.Errorf("queue: jobs push jobs more than %d deep, the last is %s", maxDepth, m.Envelope.JobType)
	}
	ctx = context.WithValue(ctx, depthKey{}, depth+1)
	handler, _ := s.handlers.Get(m.Envelope.JobType)
	own, _ := handler.(supervised)
	runner := s.runnerFor(m, own)
	for e := m.Envelope; ; {
		d := runner.Decide(ctx, handler, e)
		switch d.Outcome {
		case job.Requeued:
			if d.Abandoned != nil {
				<-d.Abandoned
			}
			e = d.Envelope
			continue
		case job.Dead:
			s.failed(ctx, own, d)
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

func (s syncStore) runnerFor(m *backend.Message, own supervised) *job.Runner {
	runner := *s.runner
	if runner.Policy == (job.RetryPolicy{}) {
		runner.Policy = job.RetryPolicy{MaxAttempts: job.Unlimited, Multiplier: 1}
	}
	if runner.Logger == nil {
		runner.Logger = s.logger
	}
	if m.Timeout != 0 {
		runner.Timeout = m.Timeout
	}
	if own != nil {
		runner.Middleware = slices.Concat(runner.Middleware, own.layers(m.Envelope))
	}
	return &runner
}

// failed calls the job's Failed method.
func (s syncStore) failed(ctx context.Context, own supervised, d job.Decision) {
	if own == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookLimit)
	defer cancel()
	callFailed(ctx, own, d.Envelope, d.Reason, d.Err, s.logger)
}

// The sync driver is a backend.Admin of nothing.

func (syncStore) Counts(context.Context, string) (c backend.Counts, err error) { return c, nil }

func (syncStore) List(context.Context, string) iter.Seq2[backend.JobInfo, error] {
	return func(func(backend.JobInfo, error) bool) {}
}

func (s syncStore) Inspect(context.Context, string) (r backend.Record, err error) {
	return r, s.unsupported("stored jobs")
}

func (syncStore) Clear(context.Context, string) (int64, error) { return 0, nil }

func (syncStore) Failed(context.Context, backend.Filter) iter.Seq2[backend.FailedJob, error] {
	return func(func(backend.FailedJob, error) bool) {}
}

func (s syncStore) FailedByID(context.Context, string) (f backend.FailedJob, err error) {
	return f, s.unsupported("dead letters")
}

func (syncStore) CountFailed(context.Context, backend.Filter) (map[string]int, error) {
	return map[string]int{}, nil
}

func (s syncStore) Retry(context.Context, ...string) error { return s.unsupported("dead letters") }

func (s syncStore) RetryAll(context.Context, backend.Filter) (int, error) {
	return 0, s.unsupported("dead letters")
}

func (syncStore) Prune(context.Context, string, time.Duration) (int64, error) { return 0, nil }
