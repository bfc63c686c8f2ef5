package middleware

import (
	"time"

	"github.com/taskd-go/task/job"
)

// Defaults of the layers.
const (
	DefaultLease         = 5 * time.Minute  // of UniqueJob, WithoutOverlapping and Concurrent
	DefaultThrottleMax   = 10               // failures
	DefaultThrottleDecay = 10 * time.Minute // since the last of them
)

// An Option changes how a layer that uses a Store behaves. Of two that contradict each other the last counts.
type Option func(*options)

type options struct {
	refused func(*RefusedError) job.Result
	lease   time.Duration
	key     KeyFunc
	onEvent func(Event)
}

// AsFailure makes a refusal a failed attempt: it counts, the job is retried by its policy and dead after the
// last attempt.
func AsFailure() Option {
	return func(o *options) { o.refused = func(err *RefusedError) job.Result { return job.Retry(err) } }
}

// OnBusy makes r the result of a refusal, such as job.Defer(d) for a lock that is worth waiting for. It gets the
// refusal's error unless it has its own.
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

// Lease sets how long a lock outlives the process that held it. While the handler runs it is renewed each third
// of d, so d need not cover the job. A d that is not positive makes the store refuse, and the job is deferred.
// Layers without a lock have no lease.
func Lease(d time.Duration) Option {
	return func(o *options) { o.lease = d }
}

// KeyedBy makes RateLimited or ThrottlesExceptions count by key in place of the job type: several types can share
// a limit, or each customer can have one. For the other layers it replaces the key that they were given.
func KeyedBy(key KeyFunc) Option {
	return func(o *options) { o.key = key }
}

// OnEvent calls f for everything that a layer does other than letting a job through. f is called from the job's
// goroutine or from the one that renews its lease, so it must be fast and safe for concurrent use.
func OnEvent(f func(Event)) Option {
	return func(o *options) { o.onEvent = f }
}

// An EventKind is a word from a closed list.
type EventKind string

// The kinds of event.
const (
	Refused     EventKind = "refused"      // the job was not let through: limited, throttled, or the lock is held
	KeyMissing  EventKind = "key_missing"  // the job has no key and failed
	StoreFailed EventKind = "store_failed" // Answer says whether that deferred the job or it went on
	LeaseLost   EventKind = "lease_lost"   // the handler's context was ended
)

// An Event is one thing that a layer did. Counting events by Layer, Kind and Answer gives the numbers of skipped,
// deferred and failed jobs.
type Event struct {
	Kind    EventKind
	Layer   string // unique, overlap, concurrent, rate or throttle
	Key     string // as it stands in the store, with the name space
	JobID   string
	JobType string
	Attempt int
	Answer  job.Kind      // what the layer answered in the handler's place; 0: the job went on
	Wait    time.Duration // of Refused: how long until the job might be let through
	Err     error
}
