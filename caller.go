package task

import (
	"context"
	"time"

	"github.com/taskd-go/task/protocol"
)

const defaultSyncTimeout = 3 * time.Second

// A Caller delivers tasks to a pool. *Task and *Client are Callers.
type Caller interface {
	// Async delivers r to a worker and returns the task's id once the worker has accepted it.
	// It does not wait for the run.
	Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error)
	// Sync delivers r to a worker and waits for what its Run returns.
	Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error)
	// AsyncMany and SyncMany deliver each of rs once and return the outcomes in the order of rs.
	AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome
	SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome
	// Status lists the workers by index.
	Status() []WorkerStatus
}

var _, _ Caller = (*Task)(nil), (*Client)(nil)

// calls holds the methods that Task and Client share.
type calls struct {
	asyncTimeout time.Duration
	// route returns the deliverer that reaches the pool now, and how long it waited for the pool.
	// The wait is within timeout; timeout <= 0: no deadline.
	route func(ctx context.Context, timeout time.Duration) (d deliverer, waited time.Duration, err error)
}

// Async delivers r to the worker with the fewest running tasks and returns the task's id once that
// worker has accepted it. The task then runs without the caller, and its result is dropped. The
// call takes at most Config.PushTimeout, or what WithTimeout says. The error is an *Error.
func (c *calls) Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error) {
	d, o, err := c.begin(ctx, c.asyncTimeout, opts)
	if err != nil {
		return 0, err
	}
	reply, err := d.one(ctx, protocol.Async, o, r)
	return reply.TaskID, err
}

// Sync delivers r to the worker with the fewest running tasks and returns its result. The call
// takes at most 3 s, or what WithTimeout says. When that time or ctx ends first, the call fails
// with ErrSockTimeout; a task that has begun runs on. The error is an *Error.
func (c *calls) Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error) {
	d, o, err := c.begin(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return Result{}, err
	}
	reply, err := d.one(ctx, protocol.Sync, o, r)
	return Result{reply.Data}, err
}

// AsyncMany does what Async does for each of rs, with one delivery and one outcome each, in the
// order of rs. It spreads the tasks over the workers by their free slots.
func (c *calls) AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, o, err := c.begin(ctx, c.asyncTimeout, opts)
	if err != nil {
		return failAll(len(rs), err)
	}
	return d.many(ctx, protocol.Async, o, rs)
}

// SyncMany does what Sync does for each of rs, with one delivery and one outcome each, in the order
// of rs. It spreads the tasks over the workers by their free slots.
func (c *calls) SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, o, err := c.begin(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return failAll(len(rs), err)
	}
	return d.many(ctx, protocol.Sync, o, rs)
}

// begin finds the pool and subtracts the time that this took from the call's timeout.
func (c *calls) begin(ctx context.Context, timeout time.Duration, opts []CallOption) (deliverer, callOptions, error) {
	o := optionsOf(timeout, opts)
	d, waited, err := c.route(ctx, o.timeout)
	if waited > 0 && o.timeout > 0 {
		o.timeout = max(o.timeout-waited, 1)
	}
	return d, o, err
}

// failAll returns the outcomes of n calls that cannot be made.
func failAll(n int, err error) []Outcome {
	outcomes := make([]Outcome, n)
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}
