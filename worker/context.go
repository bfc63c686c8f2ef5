package worker

import (
	"context"
	"sync"
	"time"
)

// A taskContext is a task's context. It makes the context of the standard library behind it at the
// first use: most tasks never use it, and it costs more than the rest of a small call.
type taskContext struct {
	draining <-chan struct{} // the server's
	deadline time.Time       // when it ends by itself; zero: unknown

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	cause  error // why the context ended; nil: it has not ended
}

type drainingKey struct{}

// Draining returns a channel that closes when the worker of the task with context ctx begins to
// drain. Outside a task it returns nil.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return c
}

func (c *taskContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
func (c *taskContext) Done() <-chan struct{}       { return c.made().Done() }
func (c *taskContext) Err() error                  { return c.made().Err() }

// Value passes every key but drainingKey to the inner context, so that context.Cause and derived
// contexts work.
func (c *taskContext) Value(key any) any {
	if key == (drainingKey{}) {
		return c.draining
	}
	return c.made().Value(key)
}

func (c *taskContext) made() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancelCause(context.Background())
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.inner
}

// end ends the context with cause. The first cause counts.
func (c *taskContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause = cause
	if c.cancel != nil {
		c.cancel(cause)
	}
}
