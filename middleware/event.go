package middleware

import (
	"time"

	"github.com/taskd-go/task/job"
)

// An EventKind says what a layer did; the list is closed.
type EventKind string

// The kinds of event.
const (
	Refused     EventKind = "refused"      // the layer kept the job from running: limited, throttled, or the lock is held
	KeyMissing  EventKind = "key_missing"  // the job has no key: it is dead
	StoreFailed EventKind = "store_failed" // the store returned an error; Answer says whether the job was deferred
	LeaseLost   EventKind = "lease_lost"   // the lease was lost, and the handler's context ended
)

// An Event is one thing that a layer did, other than calling the next one. Counting events by
// Layer, Kind and Answer gives the numbers of skipped, deferred and failed jobs.
type Event struct {
	Kind    EventKind
	Layer   string // unique, overlap, concurrent, rate or throttle
	Key     string // in the store, with the layer's name in front
	JobID   string
	JobType string
	Attempt int
	Answer  job.Kind      // the layer's result in place of the handler's; 0: none
	Wait    time.Duration // of Refused: until the job may run
	Err     error
}
