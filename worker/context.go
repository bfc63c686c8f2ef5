package worker

import (
	"context"
	"sync"
	"time"
)

// A taskContext is a task's context. A context of the standard library behind it is made only
// when someone looks: most tasks never do, and it costs more than the rest of a small call.
type taskContext struct {
	draining <-chan struct{} // the server's
	deadline time.Time       // when it will end by itself; zero: not known

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	cause  error // why it has ended; nil: it has not
}

type drainingKey struct{}

// Draining returns the channel that closes when the worker of a task's ctx drains; nil outside
// a task.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return c
}

func (c *taskContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
func (c *taskContext) Done() <-chan struct{}       { return c.made().Done() }
func (c *taskContext) Err() error                  { return c.made().Err() }

// Value hands every other key to the inner context, so that context.Cause and contexts derived
// from this one find what they know.
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

// end ends the context with cause; the first cause counts.
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
