package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A PanicError is a panic of a handler or a layer. Its text is the panic's value alone.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint(e.Value) }

func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard makes a panic of fn a retry, so that the layers around it see a result and let go of what they hold.
func guard(fn HandleFunc) HandleFunc {
	return func(ctx context.Context, e Envelope) Result { return recovered(ctx, fn, e) }
}

func recovered(ctx context.Context, fn HandleFunc, e Envelope) (result Result) {
	defer func() {
		if v := recover(); v != nil {
			result = Retry(&DeadError{Reason: ReasonPanic, Err: &PanicError{Value: v, Stack: debug.Stack()}})
		}
	}()
	return fn(ctx, e)
}

// call runs h in its layers. Without a time limit it stays on this goroutine. The channel is not nil if the handler
// was left running; it is closed when that returns.
func (r *Runner) call(ctx context.Context, h Handler, e Envelope) (Result, <-chan struct{}) {
	fn := wrap(h.Handle, r.Middleware)
	if r.Timeout <= 0 {
		return recovered(ctx, fn, e), nil
	}
	over := &DeadError{Reason: ReasonTimeout, Err: fmt.Errorf("handler timed out after %s", r.Timeout)}
	limited, cancel := context.WithTimeoutCause(ctx, r.Timeout, over)
	timer := time.NewTimer(r.Timeout)
	defer timer.Stop()

	var settled atomic.Bool // by the handler's return or by the limit, whichever is first
	done := make(chan Result, 1)
	gone := make(chan struct{})
	r.start(func() {
		var result Result // stays the zero one if the handler ends its goroutine
		defer func() {
			cancel()
			if settled.CompareAndSwap(false, true) {
				done <- result
			} else {
				r.event(Event{Kind: EventReturned, Reason: ReasonTimeout, Err: result.Err()}, e)
			}
			close(gone)
		}()
		result = timedOut(limited, over, recovered(limited, fn, e))
	})

	select {
	case result := <-done:
		return result, nil
	case <-timer.C:
		if settled.CompareAndSwap(false, true) {
			return Retry(over), gone
		}
		return <-done, nil
	}
}

func (r *Runner) start(f func()) {
	if r.Go == nil {
		go f()
		return
	}
	r.Go(f)
}

// timedOut gives the reason "timeout" to a handler that gave up because its time was over.
func timedOut(ctx context.Context, over *DeadError, result Result) Result {
	if result.Kind() != KindRetry || context.Cause(ctx) != over || reasonOf(result.Err()) != ReasonFailed {
		return result
	}
	if errors.Is(result.Err(), context.DeadlineExceeded) {
		return result.WithErr(over)
	}
	return result.WithErr(&DeadError{Reason: ReasonTimeout, Err: errors.Join(over.Err, result.Err())})
}
