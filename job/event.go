package job

import "time"

// An EventKind says what happened to a job; the list is closed.
type EventKind string

// The kinds of event.
const (
	EventStarted   EventKind = "started" // its handler is about to run
	EventSucceeded EventKind = "success" // from here to unsettled: the outcomes, under their names
	EventRequeued  EventKind = "requeued"
	EventDead      EventKind = "dead"
	EventDiscarded EventKind = "discarded"
	EventDeferred  EventKind = "deferred"
	EventSkipped   EventKind = "skipped"
	EventUnsettled EventKind = "unsettled" // also if a callback of Run failed
	EventAbandoned EventKind = "abandoned" // its handler still runs after the time limit
	EventReturned  EventKind = "returned"  // an abandoned handler returned; its result is ignored
	EventReplayed  EventKind = "replayed"  // a dead letter was published again and removed
	EventSetAside  EventKind = "set_aside" // a dead letter could not be replayed and was marked as broken
)

// An Event is one change of a job's state: what happened, when, by which Runner, and why. It never
// holds the payload.
type Event struct {
	Kind    EventKind
	By      string // the Runner's Name
	At      time.Time
	JobID   string
	JobType string
	Attempt int           // of the run that changed it
	Delay   time.Duration // until it runs again, if it was requeued or deferred
	Took    time.Duration // since the run began
	Reason  Reason        // empty if the kind says it all
	Err     error
}
