package job

import "time"

// An EventKind says what became of a job; the list is closed.
type EventKind string

// The kinds of event.
const (
	EventStarted   EventKind = "started"   // its handler is about to run
	EventSucceeded EventKind = "success"   // the outcomes of a Runner, under the same names …
	EventRequeued  EventKind = "requeued"  //
	EventDead      EventKind = "dead"      //
	EventDiscarded EventKind = "discarded" //
	EventDeferred  EventKind = "deferred"  //
	EventSkipped   EventKind = "skipped"   //
	EventUnsettled EventKind = "unsettled" // … this one also when a callback of Run failed
	EventAbandoned EventKind = "abandoned" // its handler outlived the time limit and still runs
	EventReturned  EventKind = "returned"  // an abandoned handler returned; its result is dropped
	EventReplayed  EventKind = "replayed"  // a dead letter was published again and removed
	EventSetAside  EventKind = "set_aside" // a dead letter cannot be replayed and is marked as broken
)

// An Event is one change of a job's state: who, what, when and why. It never holds the payload.
type Event struct {
	Kind    EventKind
	By      string // the Runner's Name
	At      time.Time
	JobID   string
	JobType string
	Attempt int           // of the delivery that changed it
	Delay   time.Duration // until it comes again: requeued and deferred
	Took    time.Duration // since the delivery began
	Reason  Reason        // empty for what needs none
	Err     error
}
