package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

var errOwn = errors.New("own error")

// A core is the handler inside the layers; it counts its runs.
type core struct {
	runs   atomic.Int64
	handle job.HandleFunc
}

func (c *core) Handle(ctx context.Context, e job.Envelope) job.Result {
	c.runs.Add(1)
	if c.handle == nil {
		return job.Success()
	}
	return c.handle(ctx, e)
}

func succeeds() *core { return &core{} }

func fails() *core { return answers(job.Retry(errOwn)) }

func answers(r job.Result) *core {
	return &core{handle: func(context.Context, job.Envelope) job.Result { return r }}
}

// takes is a handler that works for d, or until its context ends.
func takes(d time.Duration) *core {
	return &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
		select {
		case <-time.After(d):
			return job.Success()
		case <-ctx.Done():
			return job.Retry(ctx.Err())
		}
	}}
}

// ignores is a handler that works for d and does not look at its context.
func ignores(d time.Duration) *core {
	return &core{handle: func(context.Context, job.Envelope) job.Result {
		time.Sleep(d)
		return job.Success()
	}}
}

// panics is a layer, since the handler's own panics are results before a layer sees them.
func panics(job.HandleFunc) job.HandleFunc {
	return func(context.Context, job.Envelope) job.Result { panic(errOwn) }
}

func envelope(jobType string) job.Envelope {
	return job.Envelope{V: 1, JobID: "job_1", JobType: jobType, Payload: []byte(`{}`), Attempt: 1, MaxAttempts: 5}
}

func call(ctx context.Context, e job.Envelope, c *core, layers ...middleware.Middleware) job.Result {
	return job.With(job.Func(e.JobType, c.Handle), layers...).Handle(ctx, e)
}

// decide runs one delivery in a Runner without jitter.
func decide(t *testing.T, e job.Envelope, c *core, layers ...middleware.Middleware) job.Decision {
	p := job.RetryPolicy{MaxAttempts: 10, BaseDelay: time.Minute, MaxDelay: time.Hour, Multiplier: 2}
	r := &job.Runner{Policy: p, Middleware: layers, Logger: discard}
	return r.Decide(t.Context(), job.Func(e.JobType, c.Handle), e)
}

// held acquires key for somebody else.
func held(t *testing.T, s middleware.Store, key string, ttl time.Duration) {
	t.Helper()
	ok, _, err := s.Acquire(t.Context(), key, "another", 1, ttl)
	require.NoError(t, err)
	require.True(t, ok)
}

func assertFree(t *testing.T, s middleware.Store, key string) {
	t.Helper()
	ok, free, err := s.Acquire(t.Context(), key, "probe", 1, time.Second)
	require.NoError(t, err)
	assert.True(t, ok, "%s should be free, but is for %v", key, free)
	require.NoError(t, s.Release(t.Context(), key, "probe"))
}

func assertHeld(t *testing.T, s middleware.Store, key string) (free time.Duration) {
	t.Helper()
	ok, free, err := s.Acquire(t.Context(), key, "probe", 1, time.Second)
	require.NoError(t, err)
	assert.False(t, ok, "%s should be held", key)
	if ok {
		require.NoError(t, s.Release(t.Context(), key, "probe"))
	}
	return free
}

func assertRefused(t *testing.T, r job.Result, kind job.Kind) *middleware.RefusedError {
	t.Helper()
	assert.Equal(t, kind.String(), r.Kind().String())
	var refused *middleware.RefusedError
	require.ErrorAs(t, r.Err(), &refused)
	return refused
}

var errDown = errors.New("store is down")

// A faulty store fails what its fault says, after or in place of the real one.
type faulty struct {
	middleware.Store
	before, after func(op string) error
}

func down(ops ...string) func(string) error {
	return func(op string) error {
		for _, o := range ops {
			if o == op {
				return errDown
			}
		}
		return nil
	}
}

func (f *faulty) fault(op string, real func() error) error {
	if f.before != nil {
		if err := f.before(op); err != nil {
			return err
		}
	}
	if err := real(); err != nil {
		return err
	}
	if f.after != nil {
		return f.after(op)
	}
	return nil
}

func (f *faulty) Acquire(
	ctx context.Context, key, owner string, slots int, ttl time.Duration,
) (ok bool, free time.Duration, err error) {
	err = f.fault("acquire", func() (err error) {
		ok, free, err = f.Store.Acquire(ctx, key, owner, slots, ttl)
		return err
	})
	return ok, free, err
}

func (f *faulty) Renew(ctx context.Context, key, owner string, ttl time.Duration) (held bool, err error) {
	err = f.fault("renew", func() (err error) { held, err = f.Store.Renew(ctx, key, owner, ttl); return err })
	return held, err
}

func (f *faulty) Release(ctx context.Context, key, owner string) error {
	return f.fault("release", func() error { return f.Store.Release(ctx, key, owner) })
}

func (f *faulty) Take(
	ctx context.Context, key string, max int, window time.Duration,
) (ok bool, wait time.Duration, err error) {
	err = f.fault("take", func() (err error) { ok, wait, err = f.Store.Take(ctx, key, max, window); return err })
	return ok, wait, err
}

func (f *faulty) Add(ctx context.Context, key string, window time.Duration) (n int, err error) {
	err = f.fault("add", func() (err error) { n, err = f.Store.Add(ctx, key, window); return err })
	return n, err
}

func (f *faulty) Count(ctx context.Context, key string) (n int, left time.Duration, err error) {
	err = f.fault("count", func() (err error) { n, left, err = f.Store.Count(ctx, key); return err })
	return n, left, err
}

// An eventLog keeps what a layer reports.
type eventLog struct {
	mu     sync.Mutex
	events []middleware.Event
}

func (l *eventLog) option() middleware.Option {
	return middleware.OnEvent(func(ev middleware.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, ev)
	})
}

func (l *eventLog) kinds() (kinds []middleware.EventKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.events {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

var discard = slog.New(slog.DiscardHandler)
