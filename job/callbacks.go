package job

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// callbackLimit bounds a callback of Run: it must end although the job's own context may have.
const callbackLimit = 30 * time.Second

// A RequeueFunc stores a job that comes again after delay: the next attempt, or the same one after a deferral.
type RequeueFunc func(ctx context.Context, next Envelope, delay time.Duration) error

// A DeadFunc stores a dead job. The text of reason is the handler's own; errors.As(reason, *DeadError) has the code.
type DeadFunc func(ctx context.Context, failed Envelope, reason error) error

// Run runs one delivery as Decide does and makes at most one call back: requeue for Requeued and Deferred, dead for
// Dead. The caller acknowledges its message after Run returned without an error, and never with one: then the
// outcome is Unsettled, since the callback failed or panicked, or the lease was lost. Callbacks get a context that
// outlives ctx and ends after 30 s.
//
// After a time-out the handler may still run when requeue is called; a caller for whom the next attempt must not
// overlap it uses Decide and waits for Decision.Abandoned, or a middleware that locks, or the pool.
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

// RunRegistered is Run with the handler of the job's type. A type without one is dead with the reason
// "unregistered".
func (r *Runner) RunRegistered(ctx context.Context, reg *Registry, e Envelope, requeue RequeueFunc, dead DeadFunc) (Outcome, error) {
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
