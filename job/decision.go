package job

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An Outcome says what happens to a job after a run.
type Outcome uint8

// The outcomes.
const (
	Unsettled Outcome = iota // nothing was decided, or it could not be stored: do not acknowledge
	Succeeded
	Requeued  // runs again with the next attempt
	Dead      // goes to the dead letters
	Discarded // finished; it was no longer wanted
	Deferred  // runs again with the same attempt
	Skipped   // finished; a middleware kept it from running
)

var outcomeNames = [...]EventKind{
	EventUnsettled, EventSucceeded, EventRequeued, EventDead, EventDiscarded, EventDeferred, EventSkipped,
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return string(outcomeNames[o])
	}
	return "unknown"
}

// A Decision says what happens to a job after a run.
type Decision struct {
	Outcome Outcome

	// Envelope is the job to store, after a deferral too: with the next attempt if it was requeued,
	// otherwise as it came, except for what the Runner writes into its meta.
	Envelope Envelope
	Delay    time.Duration // until it runs again
	Reason   Reason        // empty after success, discard and skip
	Err      error         // the handler's own error; after discard and skip the reason, if the handler gave one
	Started  time.Time
	Took     time.Duration

	// Abandoned is not nil if the handler outlived its time limit. It is closed when the handler
	// returns. Until then the job's locks are held, and its next attempt would run beside this one:
	// keep its lease.
	Abandoned <-chan struct{}
}

// decide fills in d for a result of the handler.
func (r *Runner) decide(ctx context.Context, d *Decision, result Result) {
	err := result.Err()
	switch result.Kind() {
	case KindSuccess:
		d.Outcome = Succeeded
	case KindDiscard:
		d.Outcome, d.Err = Discarded, err
	case KindSkip:
		d.Outcome, d.Err = Skipped, err
	default:
		switch delay, given := result.Delay(); {
		case context.Cause(ctx) == ErrLeaseLost:
			d.Outcome, d.Reason, d.Err = Unsettled, ReasonLeaseLost, ErrLeaseLost
		case context.Cause(ctx) == ErrCancelled:
			d.Outcome, d.Err = Discarded, ErrCancelled
		case result.Kind() == KindDefer:
			r.postpone(d, delay, deferReason(err), err)
		case result.Kind() == KindFail:
			d.die(reasonOf(err), orText(err, "fail"))
		case interrupted(ctx, err):
			d.Outcome, d.Reason, d.Err = Deferred, ReasonInterrupted, err
		default:
			r.retry(d, delay, given, orText(err, "retry"))
		}
	}
}

// interrupted reports whether the end of the caller's context is the reason of err.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && reasonOf(err) == ReasonFailed &&
		(errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// deferReason returns ReasonInterrupted for a deferral with that reason: the process that ran the
// job ends.
func deferReason(err error) Reason {
	if reasonOf(err) == ReasonInterrupted {
		return ReasonInterrupted
	}
	return ReasonDeferred
}

func orText(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}

func (d *Decision) die(reason Reason, err error) {
	d.Outcome, d.Reason, d.Err, d.Delay = Dead, reason, err, 0
}

func (r *Runner) retry(d *Decision, delay time.Duration, given bool, err error) {
	limit := min(max(d.Envelope.MaxAttempts, 1), r.Policy.normal().MaxAttempts)
	attempt := d.Envelope.Attempt
	if limit != Unlimited && attempt >= limit {
		d.die(reasonOf(err), err)
		return
	}
	if !given {
		delay = r.delay(d.Envelope)
	}
	d.Outcome, d.Delay, d.Reason, d.Err = Requeued, delay, reasonOf(err), err
	d.Envelope = requeued(d.Envelope, r.KeepErrors, attemptError(attempt, d.Reason, err))
	d.Envelope = d.Envelope.WithAttempt(min(attempt, Unlimited-1) + 1)
}

// delay returns the delay after the failed attempt of e.
func (r *Runner) delay(e Envelope) time.Duration {
	if r.Backoff != nil {
		if d, ok := r.Backoff(e); ok {
			return max(d, 0)
		}
	}
	return r.Policy.Delay(e.Attempt)
}

// postpone defers the job, or makes it dead after MaxDeferAge.
func (r *Runner) postpone(d *Decision, delay time.Duration, reason Reason, err error) {
	limit := r.MaxDeferAge
	if limit <= 0 {
		limit = defaultDeferAge
	}
	now := time.Now()
	since, ok := deferredSince(d.Envelope, now)
	if ok && now.Sub(since) >= limit {
		text := fmt.Sprintf("deferred for longer than %s", limit)
		if err != nil {
			d.die(ReasonDeferred, fmt.Errorf("%s: %w", text, err))
			return
		}
		d.die(ReasonDeferred, errors.New(text))
		return
	}
	if !ok {
		d.Envelope.Meta = deferredMeta(d.Envelope.Meta, now)
	}
	d.Outcome, d.Delay, d.Reason, d.Err = Deferred, delay, reason, err
}
