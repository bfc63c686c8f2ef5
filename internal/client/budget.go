package client

import (
	"context"
	"os"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// A budget limits the whole delivery of a call: encoding, choosing, connecting, sending and
// waiting.
type budget struct {
	ctx       context.Context
	deadline  int64 // on the clock of sys.Now; never: none
	ofContext bool  // the deadline is that of ctx
	waitUntil int64 // when the call stops waiting for a slot; 0: it does not wait
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

// after returns the time d from now, or never if the clock cannot express it.
func after(d time.Duration) int64 {
	now := sys.Now()
	if int64(d) > never-now {
		return never
	}
	return now + int64(d)
}

// expire returns the deadline as a package carries it.
func (b *budget) expire() int64 {
	if b.deadline == never {
		return 0
	}
	return b.deadline
}

// left returns the time until the deadline or until, whichever is earlier.
func (b *budget) left(until int64) time.Duration {
	until = min(until, b.deadline)
	if until == never {
		return never
	}
	return time.Duration(until - sys.Now())
}

// ended returns the reason why the call must end now, or nil.
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
		return b.lateErr()
	}
	return nil
}

// contextEnded reports whether the context has ended, or will as soon as its timer fires.
func (b *budget) contextEnded() bool {
	return b.ctx.Err() != nil || b.ofContext && sys.Now() >= b.deadline
}

// lateErr returns the error of a deadline that has passed.
func (b *budget) lateErr() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.ofContext {
		return context.DeadlineExceeded
	}
	return os.ErrDeadlineExceeded
}

// pause waits for d. It returns early if the call must end.
func (b *budget) pause(d time.Duration) { b.wait(nil, d) }

// await waits until event is closed. It returns early if the call must end.
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
