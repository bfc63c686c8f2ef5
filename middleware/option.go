package middleware

import (
	"time"

	"github.com/taskd-go/task/job"
)

// The defaults of the layers.
const (
	DefaultLease         = 5 * time.Minute  // of UniqueJob, WithoutOverlapping and Concurrent
	DefaultThrottleMax   = 10               // failures
	DefaultThrottleDecay = 10 * time.Minute // since the last of them
)

// An Option changes a layer that uses a Store. Of two that contradict each other the last one
// counts.
type Option func(*options)

type options struct {
	refused func(*RefusedError) job.Result
	lease   time.Duration
	key     KeyFunc
	onEvent func(Event)
}

// AsFailure makes a refusal a failed attempt: the job is retried by its policy, and dead after the
// last attempt.
func AsFailure() Option {
	return func(o *options) { o.refused = func(err *RefusedError) job.Result { return job.Retry(err) } }
}

// OnBusy makes r the result of a refusal, such as job.Defer(d) to wait for a lock. Unless r has an
// error, it gets the *RefusedError.
func OnBusy(r job.Result) Option {
	return func(o *options) {
		o.refused = func(err *RefusedError) job.Result {
			if r.Err() != nil {
				return r
			}
			return r.WithErr(err)
		}
	}
}

// Lease sets how long a lock outlives its process. The lock is renewed after each third of d while
// the handler runs, so d may be shorter than the job. A d of 0 or less is an error of the store,
// which defers the job. Layers without a lock ignore it.
func Lease(d time.Duration) Option {
	return func(o *options) { o.lease = d }
}

// KeyedBy makes RateLimited or ThrottlesExceptions count by key in place of the job type: several
// types share a limit, or each customer has one. For the other layers it replaces their key
// argument.
func KeyedBy(key KeyFunc) Option {
	return func(o *options) { o.key = key }
}

// OnEvent makes a layer call f for everything that it does other than calling the next one. f runs
// on the goroutine of the job or on the one that renews its lease: it must return soon and be safe
// for concurrent use.
func OnEvent(f func(Event)) Option {
	return func(o *options) { o.onEvent = f }
}
