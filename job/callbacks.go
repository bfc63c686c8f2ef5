package job

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// callbackLimit bounds a callback of Run, which outlives the context of the job.
const callbackLimit = 30 * time.Second

// A RequeueFunc stores a job that runs again after delay: with the next attempt, or with the same
// one after a deferral.
type RequeueFunc func(ctx context.Context, next Envelope, delay time.Duration) error

// A DeadFunc stores a dead job. reason is a *DeadError; its text is the handler's own.
type DeadFunc func(ctx context.Context, failed Envelope, reason error) error

// Run runs a job as Decide does and then calls one of the callbacks: requeue if the outcome is
// Requeued or Deferred, dead if it is Dead. Acknowledge the message if Run returns no error, and
// only then. With an error the outcome is Unsettled: the callback failed, panicked or is nil, or
// the lease was lost. The callback's context has the values of ctx, outlives it, and ends after 30
// s.
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
