package middleware

import (
	"context"
	"time"

	"github.com/taskd-go/task/job"
)

// Timeout ends the handler's context d after it started; a d of 0 or less is no limit. When the handler then
// answers with a retry, that becomes a retry with a *TimeoutError and the reason job.ReasonTimeout; any other
// answer stands, since the work behind it is done. An earlier deadline of an outer layer or of the Runner stays in
// force. Timeout stops nothing by itself: a handler that does not heed its context runs on until the Runner's
// limit, or the hard limit of the pool, ends it.
func Timeout(d time.Duration) Middleware {
	return func(next job.HandleFunc) job.HandleFunc {
		if d <= 0 {
			return next
		}
		var over error = &TimeoutError{Limit: d}
		return func(ctx context.Context, e job.Envelope) job.Result {
			ctx, cancel := context.WithTimeoutCause(ctx, d, over)
			defer cancel()
			r := next(ctx, e)
			if r.Kind() != job.KindRetry || context.Cause(ctx) != over {
				return r
			}
			return r.WithErr(&job.DeadError{Reason: job.ReasonTimeout, Err: &TimeoutError{Limit: d, Err: r.Err()}})
		}
	}
}
