package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue/backend"
)

// A Queue pushes jobs into a store and looks after them there. It holds no goroutine and needs no
// Close; its methods are safe for concurrent use.
type Queue struct {
	options
	backend backend.Backend
	can     backend.Capabilities
	workers wakeups
}

// An Option is an option of New and NewSync.
type Option func(*options)

type options struct {
	queue  string
	policy job.RetryPolicy
	runner *job.Runner
	logger *slog.Logger
}

// DefaultQueue is where jobs go for which On names no queue; without it "default".
func DefaultQueue(name string) Option { return func(o *options) { o.queue = name } }

// Policy gives jobs that do not say so themselves their number of attempts; without it 5. With
// NewSync it is the retry policy.
func Policy(p job.RetryPolicy) Option { return func(o *options) { o.policy = p } }

// Logger is where the queue writes what it cannot return; without it slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// New returns the queue over a store, such as one of sqlqueue.New. It does no I/O.
func New(b backend.Backend, opts ...Option) *Queue {
	return &Queue{options: newOptions(opts), backend: b, can: b.Can()}
}

func newOptions(opts []Option) options {
	o := options{queue: job.DefaultQueue}
	for _, set := range opts {
		set(&o)
	}
	if o.queue == "" {
		o.queue = job.DefaultQueue
	}
	if o.logger == nil {
		o.logger = slog.Default()
	}
	return o
}

// Backend returns the store.
func (q *Queue) Backend() backend.Backend { return q.backend }

// Store returns the middleware.Store beside the jobs: what its layers hold is held for all programs
// that use the store, and its clock is the store's. Where a store has none, each of its methods
// fails with ErrUnsupported.
func (q *Queue) Store() middleware.Store {
	if l, ok := q.backend.(backend.Locker); ok {
		return l.Locks()
	}
	return noLocks{q.unsupported("locks for middleware")}
}

// unsupported returns the error for what the store cannot do.
func (q *Queue) unsupported(what string) error { return backend.Unsupported(q.backend.Name(), what) }

// as is the store as something that not every store is.
func as[T any](q *Queue, what string) (t T, err error) {
	t, ok := q.backend.(T)
	if !ok {
		err = q.unsupported(what)
	}
	return t, err
}

// noLocks is the middleware.Store of a queue whose store has none.
type noLocks struct{ err error }

func (n noLocks) Acquire(context.Context, string, string, int, time.Duration) (bool, time.Duration, error) {
	return false, 0, n.err
}

func (n noLocks) Renew(context.Context, string, string, time.Duration) (bool, error) {
	return false, n.err
}

func (n noLocks) Release(context.Context, string, string) error { return n.err }

func (n noLocks) Take(context.Context, string, int, time.Duration) (bool, time.Duration, error) {
	return false, 0, n.err
}

func (n noLocks) Add(context.Context, string, time.Duration) (int, error) { return 0, n.err }

func (n noLocks) Count(context.Context, string) (int, time.Duration, error) { return 0, 0, n.err }
