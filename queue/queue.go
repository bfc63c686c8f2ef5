package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue/backend"
)

// A Queue pushes jobs into a store, and shows and changes what is there. It starts no goroutine and
// needs no Close. It is safe for concurrent use.
type Queue struct {
	options
	backend backend.Backend
	can     backend.Capabilities
	workers wakeups
}

// An Option changes a Queue; see New and NewSync.
type Option func(*options)

type options struct {
	queue  string
	policy job.RetryPolicy
	runner *job.Runner
	logger *slog.Logger
}

// DefaultQueue sets the queue of jobs for which the option On names none, default "default".
func DefaultQueue(name string) Option { return func(o *options) { o.queue = name } }

// Policy sets the attempts of jobs that Push and PushMany store without a Tries of their own:
// MaxAttempts of p, default 5. The delays of p are unused; those are the worker's.
func Policy(p job.RetryPolicy) Option { return func(o *options) { o.policy = p } }

// Logger sets where the queue logs what it cannot return, default slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// New returns a Queue over a store, such as sqlqueue.New returns. It does no I/O.
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

// Backend returns the store of the queue.
func (q *Queue) Backend() backend.Backend { return q.backend }

// Locks returns the middleware.Store that the queue's store keeps, on the store's clock. All
// programs that use the store share its leases and counts. If the store keeps none, each method
// fails with ErrUnsupported.
func (q *Queue) Locks() middleware.Store {
	if l, ok := q.backend.(backend.Locker); ok {
		return l.Locks()
	}
	return noLocks{q.unsupported("locks for middleware")}
}

// unsupported returns the error for what the store cannot do.
func (q *Queue) unsupported(what string) error { return backend.Unsupported(q.backend.Name(), what) }

// as returns the store as a T, or an error that wraps ErrUnsupported.
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
