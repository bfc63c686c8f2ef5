package job

import (
	"errors"
	"time"
)

// A Kind says what a handler wants to become of its job.
type Kind uint8

// The kinds of result. There is no other.
const (
	KindRetry   Kind = iota + 1 // it failed and may work later
	KindSuccess                 // it is done
	KindFail                    // it failed and would fail again
	KindDiscard                 // it is not wanted any more
	KindDefer                   // it did not run; later, without counting an attempt
	KindSkip                    // a layer kept it from running, and it is finished
)

var kindNames = [...]string{"none", "retry", "success", "fail", "discard", "defer", "skip"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// A Result is a handler's answer. It is made by the functions below and does not change. The zero Result is a
// retry with the text "no result".
type Result struct {
	kind  Kind
	err   error
	delay time.Duration
	given bool
}

var errNoResult = errors.New("no result")

// Success says that the job is done.
func Success() Result { return Result{kind: KindSuccess} }

// Retry says that the job failed and may work later: after the policy's delay, if it has attempts left.
func Retry(err error) Result { return Result{kind: KindRetry, err: err} }

// RetryAfter is Retry with a delay in place of the policy's: 0 is at once, less counts as 0. It gets neither
// jitter nor the policy's cap, and on the last attempt the job is dead all the same.
func RetryAfter(err error, d time.Duration) Result {
	return Result{kind: KindRetry, err: err, delay: max(0, d), given: true}
}

// Fail says that the job failed and that no further attempt would help: it is dead.
func Fail(err error) Result { return Result{kind: KindFail, err: err} }

// Discard says that the job is not wanted any more: it is finished, without a trace among the dead.
func Discard(reason string) Result { return Result{kind: KindDiscard, err: reasonText(reason)} }

// Defer says that the job did not run and shall come again after d (less than 0 counts as 0). It costs no attempt.
// A job that is deferred for longer than Runner.MaxDeferAge is dead.
func Defer(d time.Duration) Result { return Result{kind: KindDefer, delay: max(0, d), given: true} }

// Skip says that the job was kept from running and is finished: the answer of a layer whose lock is held.
func Skip(reason string) Result { return Result{kind: KindSkip, err: reasonText(reason)} }

// FromError is Success for nil, Fail for an error that Permanent marked, and Retry for any other.
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

// WithErr is r with err as its error: a deferral that says why, for one.
func (r Result) WithErr(err error) Result {
	r.kind, r.err = r.Kind(), err
	return r
}

// Kind is what shall become of the job.
func (r Result) Kind() Kind {
	if r.kind == 0 {
		return KindRetry
	}
	return r.kind
}

// Err is the error of a failure, nil when none was given; for Discard, Skip and Defer it is the reason, if any.
func (r Result) Err() error {
	if r.kind == 0 {
		return errNoResult
	}
	return r.err
}

// Failed reports whether the handler ran and failed: a retry or a fail.
func (r Result) Failed() bool { return r.Kind() == KindRetry || r.Kind() == KindFail }

// Delay is the delay of RetryAfter or Defer; given is false for every other result.
func (r Result) Delay() (d time.Duration, given bool) { return r.delay, r.given }

func reasonText(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}

// Permanent marks err as one that a further attempt cannot cure; FromError makes a Fail of it. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }
