package job

import (
	"context"
	"fmt"
)

// A Publisher makes envelopes and hands them to a transport. It needs no registry: the consumers may be other
// programs. It is safe for concurrent use if its publish function is.
type Publisher struct {
	publish func(context.Context, Envelope) error
	policy  RetryPolicy
}

// NewPublisher gives new jobs the policy's MaxAttempts.
func NewPublisher(publish func(context.Context, Envelope) error, p RetryPolicy) *Publisher {
	return &Publisher{publish: publish, policy: p}
}

// Dispatch publishes a new job (see New) and returns its envelope; with an error, none.
func (p *Publisher) Dispatch(ctx context.Context, jobType string, payload any, meta map[string]any) (Envelope, error) {
	e, err := New(jobType, payload, meta, p.policy)
	if err != nil {
		return Envelope{}, err
	}
	return p.DispatchEnvelope(ctx, e)
}

// DispatchEnvelope publishes e as it is, its attempt too. It refuses one without a type.
func (p *Publisher) DispatchEnvelope(ctx context.Context, e Envelope) (Envelope, error) {
	if e.JobType == "" {
		return Envelope{}, &DecodeError{Reason: MissingJobType, Err: errNoType}
	}
	if err := p.publish(ctx, e); err != nil {
		return Envelope{}, fmt.Errorf("job: publish %s (%s): %w", e.JobID, e.JobType, err)
	}
	return e, nil
}
