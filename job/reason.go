package job

import (
	"errors"
	"slices"
)

// A Reason is a code from a closed list that says why a job is dead, runs again or waits. It is
// stored and counted; the error beside it has the words for people.
type Reason string

// The reasons.
const (
	ReasonFailed       Reason = "failed"        // the handler failed for good, or retried on its last attempt
	ReasonExhausted    Reason = "exhausted"     // its attempts were used up before it ran
	ReasonTimeout      Reason = "timeout"       // it ran longer than its time limit
	ReasonPanic        Reason = "panic"         // the handler or a middleware panicked
	ReasonCrashed      Reason = "crashed"       // the process that ran it ended
	ReasonDecode       Reason = "decode"        // its message or its payload cannot be read
	ReasonUnregistered Reason = "unregistered"  // its type has no handler
	ReasonDeferred     Reason = "deferred"      // it asked to wait, or waited longer than MaxDeferAge
	ReasonNewer        Reason = "newer_version" // its envelope's version is newer than this package
	ReasonInterrupted  Reason = "interrupted"   // its caller's context ended while it ran
	ReasonLeaseLost    Reason = "lease_lost"    // another worker may own it by now
)

var reasons = []Reason{ReasonFailed, ReasonExhausted, ReasonTimeout, ReasonPanic, ReasonCrashed, ReasonDecode,
	ReasonUnregistered, ReasonDeferred, ReasonNewer, ReasonInterrupted, ReasonLeaseLost}

// A DeadError is an error with a Reason. Run gives one to DeadFunc. A handler or middleware that
// knows a better reason than "failed" returns one in Retry or Fail.
type DeadError struct {
	Reason Reason
	Err    error
}

// Error returns the text of Err alone, so that a dead letter shows the handler's own words.
func (e *DeadError) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return e.Err.Error()
}

func (e *DeadError) Unwrap() error { return e.Err }

// reasonOf returns the reason that err carries; one that is not on the list counts as "failed".
func reasonOf(err error) Reason {
	var d *DeadError
	if errors.As(err, &d) && slices.Contains(reasons, d.Reason) {
		return d.Reason
	}
	return ReasonFailed
}
