package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrLeaseLost is the cause of a handler's context when another worker may own the job by now. What the handler
// answers after that, unless it finished, settles nothing.
var ErrLeaseLost = errors.New("job: lease lost")

// ErrCancelled is the cause of a handler's context when somebody took the job away for good. What the handler answers
// after that, unless it finished, discards the job.
var ErrCancelled = errors.New("job: cancelled")

const (
	defaultDeferAge = 24 * time.Hour
	newerDelay      = time.Minute // how long a job with a newer envelope waits for a newer program
)

// A Runner runs one delivery of a job and decides what becomes of it. Its fields must not change once it is in use;
// its methods are safe for concurrent use. The zero value is a Runner with the default policy and no time limit.
type Runner struct {
	Name   string // who, in events
	Policy RetryPolicy

	// Backoff, if not nil, is asked for the wait after a failed attempt that shall come again and whose handler gave
	// none: after a panic, a time-out or a lost process too. Not ok: the Policy's delay.
	Backoff func(e Envelope) (d time.Duration, ok bool)

	Timeout    time.Duration // <= 0: none
	Middleware []Middleware  // around every handler, the first outermost, inside the time limit
	Logger     *slog.Logger  // nil: slog.Default()

	// OnEvent is told of each change of state, from the goroutine where it happens; it should return soon.
	OnEvent func(Event)

	// MaxDeferAge bounds how long a job is deferred, from its first deferral in a row; the age at which it is dead
	// with the reason "deferred". <= 0: 24 h. The first deferral's time travels in meta under MetaDeferredSince.
	MaxDeferAge time.Duration

	// Go calls f in another goroutine, at once. A handler with a time limit runs in it. nil: a new goroutine each time.
	Go func(f func())

	// KeepErrors is how many of its failed attempts a requeued job carries in meta under MetaErrors, the newest
	// last, for the dead letter; 0: none. A queue that keeps a job's errors itself does not need it.
	KeepErrors int
}

// An Outcome is what becomes of a job after one delivery.
type Outcome uint8

// The outcomes.
const (
	Unsettled Outcome = iota // do not acknowledge: nothing was decided, or it could not be stored
	Succeeded
	Requeued  // comes again with the next attempt
	Dead      // for the dead letters
	Discarded // finished, not wanted
	Deferred  // comes again with the same attempt
	Skipped   // finished, a layer kept it from running
)

var outcomeNames = [...]EventKind{EventUnsettled, EventSucceeded, EventRequeued, EventDead, EventDiscarded, EventDeferred, EventSkipped}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return string(outcomeNames[o])
	}
	return "unknown"
}

// A Decision is what Decide found.
type Decision struct {
	Outcome Outcome

	// Envelope is the job as it goes on: with the next attempt when requeued, otherwise as it came, but for what
	// the Runner keeps in its meta. Store this one, after a deferral too.
	Envelope Envelope
	Delay    time.Duration // until it comes again
	Reason   Reason        // empty for success, discard and skip
	Err      error         // the handler's own error; for discard and skip its reason, if it gave one
	Started  time.Time
	Took     time.Duration

	// Abandoned is not nil when the handler outlived its time limit; it is closed when that handler returns. Until
	// then the job's locks are held, and its next attempt would run beside it: keep its lease.
	Abandoned <-chan struct{}
}

// Decide runs h for one delivery and decides. It calls no callback, stores nothing, and returns no later than the
// time limit, even if the handler ignores its context; without a limit, when the handler returns.
//
// A panic of the handler or of a layer is a retry with the reason "panic". A retry on the last attempt is dead, the
// last being the smaller of the envelope's and the policy's MaxAttempts. The handler runs even if the attempt is
// beyond that. A handler that gives up because ctx ended is deferred with the reason "interrupted" and no delay; if
// ctx ended by ErrLeaseLost, it is unsettled, by ErrCancelled, discarded. A nil h means that no handler is registered:
// dead. A job whose envelope is newer than Version does not run: it is deferred by a minute.
func (r *Runner) Decide(ctx context.Context, h Handler, e Envelope) Decision {
	d := Decision{Envelope: e, Started: time.Now()}
	switch {
	case e.V > Version:
		err := fmt.Errorf("envelope version %d is newer than %d", e.V, Version)
		r.postpone(&d, newerDelay, ReasonNewer, err)
	case h == nil:
		d.die(ReasonUnregistered, errors.New("unregistered jobType: "+e.JobType))
	default:
		r.event(Event{Kind: EventStarted}, e)
		var result Result
		result, d.Abandoned = r.call(ctx, h, e)
		r.settle(ctx, &d, result)
	}
	d.Took = time.Since(d.Started)
	r.report(ctx, e, d)
	return d
}

// settle turns a result into the decision.
func (r *Runner) settle(ctx context.Context, d *Decision, result Result) {
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

// interrupted reports whether err is there because the caller's context ended.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && reasonOf(err) == ReasonFailed &&
		(errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// deferReason is "interrupted" for a deferral that says so: its job ran in another process, which goes.
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

// delay is the wait after the failed attempt of e.
func (r *Runner) delay(e Envelope) time.Duration {
	if r.Backoff != nil {
		if d, ok := r.Backoff(e); ok {
			return max(d, 0)
		}
	}
	return r.Policy.Delay(e.Attempt)
}

// postpone defers the job, or ends it when that has gone on for too long.
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
