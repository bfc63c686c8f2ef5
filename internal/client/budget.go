package client

import (
	"context"
	"os"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// A budget is the one limit of a call's whole delivery: encoding, choosing,
// connecting, sending and waiting.
type budget struct {
	ctx       context.Context
	deadline  int64 // sys.Now's clock; never: none
	ofContext bool  // the deadline is ctx's own
	waitUntil int64 // how long the call waits for a slot; 0: not at all
	cut       <-chan struct{}
}

func (c *Client) budget(ctx context.Context, call *Call) budget {
	b := budget{ctx: ctx, deadline: never, cut: c.cut}
	if call.Deadline > 0 {
		b.deadline = call.Deadline
	}
	if at, ok := ctx.Deadline(); ok {
		if d := after(time.Until(at)); d < b.deadline {
			b.deadline, b.ofContext = d, true
		}
	}
	if call.Wait > 0 {
		b.waitUntil = after(call.Wait)
	}
	return b
}

// after returns the time in d; what lies beyond the clock's end is never.
func after(d time.Duration) int64 {
	now := sys.Now()
	if int64(d) > never-now {
		return never
	}
	return now + int64(d)
}

// expire is the deadline as a package carries it.
func (b *budget) expire() int64 {
	if b.deadline == never {
		return 0
	}
	return b.deadline
}

// left returns how much is left until the deadline: at most until, when that is earlier.
func (b *budget) left(until int64) time.Duration {
	until = min(until, b.deadline)
	if until == never {
		return never
	}
	return time.Duration(until - sys.Now())
}

// ended returns why the call must end now, or nil.
func (b *budget) ended() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	select {
	case <-b.cut:
		return ErrClosed
	default:
	}
	if b.deadline != never && sys.Now() >= b.deadline {
		return b.late()
	}
	return nil
}

// contextEnded says whether the caller's own context has ended, also when its timer has not fired yet.
func (b *budget) contextEnded() bool {
	return b.ctx.Err() != nil || b.ofContext && sys.Now() >= b.deadline
}

// late returns the error of a deadline that has passed.
func (b *budget) late() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.ofContext {
		return context.DeadlineExceeded
	}
	return os.ErrDeadlineExceeded
}

// pause waits for d, or less when the call must end before.
func (b *budget) pause(d time.Duration) { b.wait(nil, d) }

// await waits until event is closed, or less when the call must end before.
func (b *budget) await(event <-chan struct{}) { b.wait(event, never) }

func (b *budget) wait(event <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(min(d, b.left(never)))
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
	case <-b.ctx.Done():
	case <-b.cut:
	}
}
