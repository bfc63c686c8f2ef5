package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrLeaseLost is the cause with which a handler's context ends when another worker may have the
// job by now. After that the Runner ignores a retry, a fail and a defer; a success, discard or skip
// still counts.
var ErrLeaseLost = errors.New("job: lease lost")

// ErrCancelled is the cause with which a handler's context ends when the job was cancelled. After
// that a retry, a fail or a defer discards the job; a success, discard or skip still counts.
var ErrCancelled = errors.New("job: cancelled")

const (
	defaultDeferAge = 24 * time.Hour
	newerDelay      = time.Minute // how long a job with a newer envelope waits for a newer program
)

// A Runner runs jobs and decides what happens to each after its run. Its fields must not change
// once it is in use; its methods are safe for concurrent use. The zero value is a Runner with the
// default policy and no time limit.
type Runner struct {
	Name   string // of the worker, for events
	Policy RetryPolicy

	// Backoff, if not nil, returns the delay after a failed attempt, also after a panic, a timeout
	// or a lost process. If ok is false, the delay is the Policy's. A delay that the handler gave
	// with RetryAfter overrides both.
	Backoff func(e Envelope) (d time.Duration, ok bool)

	Timeout    time.Duration // of one run; <= 0: none
	Middleware []Middleware  // around every handler, the first outermost, inside the time limit
	Logger     *slog.Logger  // nil: slog.Default()

	// OnEvent, if not nil, is called for each change of a job's state, on the goroutine where it
	// happens; the Runner waits until OnEvent returns.
	OnEvent func(Event)

	// MaxDeferAge bounds how long a job may be deferred without a run that failed in between. A job
	// whose first deferral in a row is older is dead with ReasonDeferred. <= 0: 24 h. The time of
	// the first deferral travels in the meta under MetaDeferredSince.
	MaxDeferAge time.Duration

	// Go starts f on another goroutine and does not wait for it. The Runner calls it for each
	// handler with a time limit. nil: the go statement.
	Go func(f func())

	// KeepErrors is how many of its failed attempts a requeued job carries in its meta for the dead
	// letter; see Failures. 0: none.
	KeepErrors int
}

// Decide runs h for one job and decides what happens to it. It stores nothing and calls no
// callback. It returns at the time limit, even if the handler ignores its context; without a limit,
// when the handler returns.
//
//   - A panic of the handler or of a middleware is a retry with ReasonPanic.
//   - A retry on the last attempt is dead. The last attempt is the smaller of the envelope's and
//     the policy's MaxAttempts. A job whose attempt is above that still runs.
//   - A handler that returns an error because ctx ended is deferred with ReasonInterrupted, without
//     a delay. If the cause is ErrLeaseLost, the job is unsettled; if it is ErrCancelled,
//     discarded.
//   - A nil h means that the job's type has no handler: it is dead with ReasonUnregistered.
//   - A job whose envelope is newer than Version does not run; it is deferred by a minute.
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
		r.decide(ctx, &d, result)
	}
	d.Took = time.Since(d.Started)
	r.report(ctx, e, d)
	return d
}

// callbackLimit bounds a callback of Run, which outlives the context of the job.
const callbackLimit = 30 * time.Second

// A RequeueFunc stores a job that runs again after delay: with the next attempt, or with the same
// one after a deferral.
type RequeueFunc func(ctx context.Context, next Envelope, delay time.Duration) error

// A DeadFunc stores a dead job. reason is a *DeadError; its text is the handler's own.
type DeadFunc func(ctx context.Context, failed Envelope, reason error) error

// Run runs a job as Decide does and then calls one of the callbacks: requeue if the outcome is
// Requeued or Deferred, dead if it is Dead. Acknowledge the message if Run returns no error, and
// only then. With an error the outcome is Unsettled: the callback failed, panicked or was missing,
// or the lease was lost. The callback's context has the values of ctx, outlives it, and ends after
// 30 s.
//
// After a timeout the handler may still run while requeue is called. To keep the next attempt from
// running beside it, call Decide and wait for Decision.Abandoned, or use a middleware that locks,
// or package pooljob.
func (r *Runner) Run(ctx context.Context, h Handler, e Envelope, requeue RequeueFunc, dead DeadFunc) (Outcome, error) {
	d := r.Decide(ctx, h, e)
	var err error
	switch d.Outcome {
	case Requeued, Deferred:
		err = callback(ctx, requeue != nil, func(ctx context.Context) error { return requeue(ctx, d.Envelope, d.Delay) })
	case Dead:
		reason := &DeadError{Reason: d.Reason, Err: d.Err}
		err = callback(ctx, dead != nil, func(ctx context.Context) error { return dead(ctx, d.Envelope, reason) })
	case Unsettled:
		return Unsettled, fmt.Errorf("job: %s is unsettled: %w", e.JobID, d.Err)
	}
	if err != nil {
		err = fmt.Errorf("job: %s is %s, which could not be stored: %w", e.JobID, d.Outcome, err)
		r.event(Event{Kind: EventUnsettled, Took: time.Since(d.Started), Reason: d.Reason, Err: err}, e)
		return Unsettled, err
	}
	return d.Outcome, nil
}

// RunRegistered is Run with the handler that reg has for the job's type. Without one the job is
// dead with ReasonUnregistered.
func (r *Runner) RunRegistered(
	ctx context.Context, reg *Registry, e Envelope, requeue RequeueFunc, dead DeadFunc,
) (Outcome, error) {
	h, _ := reg.Get(e.JobType)
	return r.Run(ctx, h, e, requeue, dead)
}

func callback(ctx context.Context, given bool, call func(context.Context) error) (err error) {
	if !given {
		return errors.New("no callback for it")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackLimit)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("callback panicked: %v", v)
		}
	}()
	return call(ctx)
}
