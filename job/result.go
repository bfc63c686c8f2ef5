package job

import (
	"errors"
	"time"
)

// A Kind says what is to happen to a job.
type Kind uint8

// The kinds of result; the list is closed.
const (
	KindRetry   Kind = iota + 1 // it failed and may succeed later
	KindSuccess                 // it is done
	KindFail                    // it failed and would fail again: it is dead
	KindDiscard                 // it is no longer wanted
	KindDefer                   // it did not run and runs later; no attempt counts
	KindSkip                    // a middleware kept it from running; it is finished
)

var kindNames = [...]string{"none", "retry", "success", "fail", "discard", "defer", "skip"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// A Result is a handler's answer, made by Success, Retry, RetryAfter, Fail, Discard, Defer, Skip or
// FromError. The zero Result is a retry with the text "no result".
type Result struct {
	kind  Kind
	err   error
	delay time.Duration
	given bool
}

var errNoResult = errors.New("no result")

// Success says that the job is done.
func Success() Result { return Result{kind: KindSuccess} }

// Retry says that the job failed and may succeed later. If it has attempts left, it runs again
// after the policy's delay.
func Retry(err error) Result { return Result{kind: KindRetry, err: err} }

// RetryAfter is like Retry, but the job runs again after d, without jitter and without the policy's
// MaxDelay. Less than 0 counts as 0. On the last attempt the job is still dead.
func RetryAfter(err error, d time.Duration) Result {
	return Result{kind: KindRetry, err: err, delay: max(0, d), given: true}
}

// Fail says that the job failed and would fail again: it is dead.
func Fail(err error) Result { return Result{kind: KindFail, err: err} }

// Discard says that the job is no longer wanted: it is finished, without a dead letter.
func Discard(reason string) Result { return Result{kind: KindDiscard, err: reasonText(reason)} }

// Defer says that the job did not run and is to run after d; less than 0 counts as 0. It costs no
// attempt. A job that is deferred for longer than Runner.MaxDeferAge is dead.
func Defer(d time.Duration) Result { return Result{kind: KindDefer, delay: max(0, d), given: true} }

// Skip says that the job is finished although it did not run. A middleware returns it when its lock
// is held.
func Skip(reason string) Result { return Result{kind: KindSkip, err: reasonText(reason)} }

// FromError returns Success for nil, Fail for an error that Permanent marked, and Retry for any
// other.
func FromError(err error) Result {
	var p *permanentError
	switch {
	case err == nil:
		return Success()
	case errors.As(err, &p):
		return Fail(err)
	default:
		return Retry(err)
	}
}

// WithErr returns r with err as its error, such as the reason of a deferral.
func (r Result) WithErr(err error) Result {
	r.kind, r.err = r.Kind(), err
	return r
}

// Kind says what is to happen to the job.
func (r Result) Kind() Kind {
	if r.kind == 0 {
		return KindRetry
	}
	return r.kind
}

// Err returns the error of a failure, or the reason of a Discard, Skip or Defer; nil if none was
// given.
func (r Result) Err() error {
	if r.kind == 0 {
		return errNoResult
	}
	return r.err
}

// Failed reports whether the handler ran and failed: a retry or a fail.
func (r Result) Failed() bool { return r.Kind() == KindRetry || r.Kind() == KindFail }

// Delay returns the delay of RetryAfter or Defer; given is false for any other result.
func (r Result) Delay() (d time.Duration, given bool) { return r.delay, r.given }

func reasonText(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}

// Permanent marks err as one that would recur on every attempt: FromError makes a Fail of it.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }
