package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPublisherVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name   string
			Policy int `json:"policy_max_attempts"`
			Call   struct {
				JobType       string
				Payload, Meta map[string]any
				Envelope      *Envelope
			}
			Want   map[string]any `json:"expect_published"`
			Expect any
		}
	}](t, "publisher.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var published []Envelope
			var failure error
			policy := RetryPolicy{}
			if c.Policy > 0 {
				policy = DefaultRetryPolicy()
				policy.MaxAttempts = c.Policy
			}
			p := NewPublisher(func(_ context.Context, e Envelope) error {
				published = append(published, e)
				return failure
			}, policy)

			var got Envelope
			var err error
			switch {
			case c.Name == "publish_error":
				failure = errors.New("broker is down")
				got, err = p.Dispatch(t.Context(), "t", nil, nil)
				require.ErrorIs(t, err, failure)
				assert.Zero(t, got)
				return
			case c.Name == "empty_type":
				_, err = p.Dispatch(t.Context(), "", c.Call.Payload, nil)
				checkDecodeError(t, "missing_job_type", err)
				_, err = p.DispatchEnvelope(t.Context(), Envelope{})
				checkDecodeError(t, "missing_job_type", err)
				assert.Empty(t, published)
				return
			case c.Call.Envelope != nil:
				got, err = p.DispatchEnvelope(t.Context(), *c.Call.Envelope)
			case c.Call.JobType == "":
				got, err = p.Dispatch(t.Context(), "t", nil, nil)
			default:
				got, err = p.Dispatch(t.Context(), c.Call.JobType, c.Call.Payload, c.Call.Meta)
			}
			require.NoError(t, err)
			require.Len(t, published, 1)
			assert.Equal(t, published[0], got)
			checkEnvelope(t, c.Want, got)
		})
	}
}
