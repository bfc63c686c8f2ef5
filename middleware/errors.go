package middleware

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A RefusedError says that a layer did not let a job through. It is the error of the result in every case: of a
// skip, a deferral and a failure.
type RefusedError struct {
	Layer string
	Key   string        // as it stands in the store
	Wait  time.Duration // until the window opens, or the first lease ends if it is not renewed
	text  string
}

func (e *RefusedError) Error() string { return e.text }

// A KeyError says that a KeyFunc found no key for a job. The payload does not change between attempts, so the
// job is failed and not retried.
type KeyError struct {
	Layer   string
	JobType string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s: no key for a job of type %q: a member that the key is made of is missing from its payload, or is not a text, a number or a truth value", e.Layer, e.JobType)
}

// A TimeoutError says that a handler failed after its Timeout layer had ended its context. Err is the handler's
// own error; errors.Is finds it, and context.DeadlineExceeded.
type TimeoutError struct {
	Limit time.Duration
	Err   error
}

func (e *TimeoutError) Error() string {
	return "Job exceeded maximum execution time of " + decimal(e.Limit.Seconds()) + " seconds."
}

func (e *TimeoutError) Unwrap() []error { return []error{context.DeadlineExceeded, e.Err} }

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
