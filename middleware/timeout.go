package middleware

import (
	"context"
	"time"

	"github.com/taskd-go/task/job"
)

// Timeout ends the handler's context d after its start; a d of 0 or less is no limit. If the
// handler then answers with a retry, the result is a retry with a *TimeoutError and
// job.ReasonTimeout; any other answer stays as it is. An earlier deadline of an outer layer or of
// the Runner stays in force. Timeout does not stop a handler that ignores its context: the Runner's
// Timeout leaves it behind, and a hard limit of package pooljob stops it.
func Timeout(d time.Duration) Middleware {
	return func(next job.HandleFunc) job.HandleFunc {
		if d <= 0 {
			return next
		}
		var timeout error = &TimeoutError{Limit: d}
		return func(ctx context.Context, e job.Envelope) job.Result {
			ctx, cancel := context.WithTimeoutCause(ctx, d, timeout)
			defer cancel()
			r := next(ctx, e)
			if r.Kind() != job.KindRetry || context.Cause(ctx) != timeout {
				return r
			}
			return r.WithErr(&job.DeadError{Reason: job.ReasonTimeout, Err: &TimeoutError{Limit: d, Err: r.Err()}})
		}
	}
}
