package middleware

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A RefusedError says that a layer kept a job from running. It is the error of the layer's result,
// whether that is a skip, a deferral or a failure.
type RefusedError struct {
	Layer string
	Key   string        // in the store
	Wait  time.Duration // until the window opens, or until the first lease ends unless it is renewed
	text  string
}

func (e *RefusedError) Error() string { return e.text }

// A KeyError says that a KeyFunc returned no key for a job. The payload would be the same on the
// next attempt, so the job is dead.
type KeyError struct {
	Layer   string
	JobType string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s: no key for a job of type %q: a member that the key is made of is missing from its payload, "+
		"or is not a string, number or boolean", e.Layer, e.JobType)
}

// A TimeoutError says that a handler failed after Timeout had ended its context. Err is the
// handler's own error. errors.Is finds it, and context.DeadlineExceeded.
type TimeoutError struct {
	Limit time.Duration
	Err   error
}

func (e *TimeoutError) Error() string {
	return "Job exceeded maximum execution time of " + decimal(e.Limit.Seconds()) + " seconds."
}

func (e *TimeoutError) Unwrap() []error { return []error{context.DeadlineExceeded, e.Err} }

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
