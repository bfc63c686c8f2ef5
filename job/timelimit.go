package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A PanicError is a panic of a handler or a middleware. Its text is the panic's value alone.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint(e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard makes a panic of fn a retry: the layers around it get a result and release what they hold.
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

// call runs h in its layers, on this goroutine if there is no time limit. abandoned is nil unless
// the handler outlived the limit; then it is closed when the handler returns.
func (r *Runner) call(ctx context.Context, h Handler, e Envelope) (_ Result, abandoned <-chan struct{}) {
	fn := wrap(h.Handle, r.Middleware)
	if r.Timeout <= 0 {
		return recovered(ctx, fn, e), nil
	}
	timeout := &DeadError{Reason: ReasonTimeout, Err: fmt.Errorf("handler timed out after %s", r.Timeout)}
	limited, cancel := context.WithTimeoutCause(ctx, r.Timeout, timeout)
	timer := time.NewTimer(r.Timeout)
	defer timer.Stop()

	var decided atomic.Bool // by the handler's return or by the limit, whichever is first
	results := make(chan Result, 1)
	returned := make(chan struct{})
	r.start(func() {
		var result Result // stays zero if the handler ends its goroutine
		defer func() {
			cancel()
			if decided.CompareAndSwap(false, true) {
				results <- result
			} else {
				r.event(Event{Kind: EventReturned, Reason: ReasonTimeout, Err: result.Err()}, e)
			}
			close(returned)
		}()
		result = timedOut(limited, timeout, recovered(limited, fn, e))
	})

	select {
	case result := <-results:
		return result, nil
	case <-timer.C:
		if decided.CompareAndSwap(false, true) {
			return Retry(timeout), returned
		}
		return <-results, nil
	}
}

func (r *Runner) start(f func()) {
	if r.Go == nil {
		go f()
		return
	}
	r.Go(f)
}

// timedOut gives the reason "timeout" to the result of a handler that returned because its time was
// up.
func timedOut(ctx context.Context, timeout *DeadError, result Result) Result {
	if result.Kind() != KindRetry || context.Cause(ctx) != timeout || reasonOf(result.Err()) != ReasonFailed {
		return result
	}
	if errors.Is(result.Err(), context.DeadlineExceeded) {
		return result.WithErr(timeout)
	}
	return result.WithErr(&DeadError{Reason: ReasonTimeout, Err: errors.Join(timeout.Err, result.Err())})
}
