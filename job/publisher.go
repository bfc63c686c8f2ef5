package job

import (
	"context"
	"fmt"
)

// A Publisher makes envelopes and gives them to a transport. It needs no handlers: the jobs may run
// in other programs. It is safe for concurrent use if its publish function is.
type Publisher struct {
	publish func(context.Context, Envelope) error
	policy  RetryPolicy
}

// NewPublisher returns a Publisher that gives new jobs the policy's MaxAttempts and calls publish
// for each job.
func NewPublisher(publish func(context.Context, Envelope) error, p RetryPolicy) *Publisher {
	return &Publisher{publish: publish, policy: p}
}

// Dispatch publishes a new job, made as by New, and returns its envelope. With an error it returns
// none.
func (p *Publisher) Dispatch(ctx context.Context, jobType string, payload any, meta map[string]any) (Envelope, error) {
	e, err := New(jobType, payload, meta, p.policy)
	if err != nil {
		return Envelope{}, err
	}
	return p.DispatchEnvelope(ctx, e)
}

// DispatchEnvelope publishes e unchanged, with its attempt. An envelope without a type is a
// *DecodeError.
func (p *Publisher) DispatchEnvelope(ctx context.Context, e Envelope) (Envelope, error) {
	if e.JobType == "" {
		return Envelope{}, &DecodeError{Reason: MissingJobType, Err: errNoType}
	}
	if err := p.publish(ctx, e); err != nil {
		return Envelope{}, fmt.Errorf("job: publish %s (%s): %w", e.JobID, e.JobType, err)
	}
	return e, nil
}
