package job

import (
	"errors"
	"slices"
)

// A Reason is a code from a closed list: why a job is dead, comes again or waits. It is stored and counted; the
// words for people are in the error beside it.
type Reason string

// The reasons.
const (
	ReasonFailed       Reason = "failed"        // the handler failed for good, or retried on its last attempt
	ReasonExhausted    Reason = "exhausted"     // its attempts were used up before it ran
	ReasonTimeout      Reason = "timeout"       // it outlived its time limit
	ReasonPanic        Reason = "panic"         // the handler or a layer panicked
	ReasonCrashed      Reason = "crashed"       // the process that ran it ended
	ReasonDecode       Reason = "decode"        // its message or its payload cannot be read
	ReasonUnregistered Reason = "unregistered"  // no handler for its type
	ReasonDeferred     Reason = "deferred"      // it asked to wait, or waited longer than MaxDeferAge
	ReasonNewer        Reason = "newer_version" // its envelope's version is newer than this package
	ReasonInterrupted  Reason = "interrupted"   // its caller's context ended while it ran
	ReasonLeaseLost    Reason = "lease_lost"    // another worker may own it by now
)

var reasons = []Reason{ReasonFailed, ReasonExhausted, ReasonTimeout, ReasonPanic, ReasonCrashed, ReasonDecode,
	ReasonUnregistered, ReasonDeferred, ReasonNewer, ReasonInterrupted, ReasonLeaseLost}

// A DeadError is an error with its reason code. The Runner gives one to DeadFunc; a handler or a layer that knows
// a better code than "failed" returns one in Retry or Fail.
type DeadError struct {
	Reason Reason
	Err    error
}

// Error is the text of Err alone, so that a dead letter shows the handler's own words.
func (e *DeadError) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return e.Err.Error()
}

func (e *DeadError) Unwrap() error { return e.Err }

// reasonOf is the code that err carries; what is not on the list counts as "failed".
func reasonOf(err error) Reason {
	var d *DeadError
	if errors.As(err, &d) && slices.Contains(reasons, d.Reason) {
		return d.Reason
	}
	return ReasonFailed
}
