package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// sweep ends lapsed reservations of any queue and type, except those of this worker. It makes their
// jobs due again, or dead if afterLapse says so.
func (s *session) sweep(ctx context.Context) error {
	sweeper, ok := s.consumer.(backend.Sweeper)
	if !ok {
		return nil
	}
	for failures := 0; failures < sweepFailures; {
		s.forgetStuck(time.Now())
		lapsed, full, err := sweeper.Lapsed(ctx, slices.Concat(s.reserved(), s.stuck))
		if err != nil || len(lapsed) == 0 {
			return err
		}
		ended, err := s.endLapsed(ctx, lapsed)
		if err != nil || !full {
			return err
		}
		if !ended {
			failures++
		}
	}
	return nil
}

// sweepFailures is how many calls of Lapsed, of whose deliveries none could be ended, one sweep makes.
const sweepFailures = 5

// endLapsed completes lapsed deliveries. It tries those that fail together one by one, so that one
// bad delivery holds up no other: the next calls of Lapsed leave it out until a lease has passed. ended
// reports whether it ended any.
func (s *session) endLapsed(ctx context.Context, lapsed []backend.Delivery) (ended bool, err error) {
	ends, stored := make([]completion, len(lapsed)), make([]backend.Completion, len(lapsed))
	for i := range lapsed {
		ends[i] = afterLapse(&lapsed[i], s.runner.Policy)
		stored[i] = ends[i].stored()
	}
	errs := s.consumer.Complete(ctx, stored)
	bad := 0
	var failed error
	for i := range ends {
		var err error
		if errs != nil {
			err = errs[i]
		}
		if err != nil && !errors.Is(err, backend.ErrLost) {
			err = first(s.consumer.Complete(ctx, stored[i:i+1]))
		}
		switch {
		case err == nil:
			ended = true
			s.swept(&ends[i])
		case errors.Is(err, backend.ErrLost): // its worker has completed or renewed it since
		case ctx.Err() != nil:
			return false, err
		default:
			bad, failed = bad+1, err
			s.stick(lapsed[i].Receipt, time.Now())
		}
	}
	if bad > 0 {
		s.q.logger.Warn("queue: lapsed reservations cannot be ended", "jobs", bad, "error", failed)
	}
	return ended, nil
}

// stick makes the next looks for lapsed reservations pass over one that cannot be ended.
func (s *session) stick(r backend.Receipt, now time.Time) {
	if len(s.stuck) == 0 {
		s.stuckTill = now.Add(s.lease)
	}
	s.stuck = append(s.stuck, r)
}

// forgetStuck gives what could not be ended another try once a lease has passed.
func (s *session) forgetStuck(now time.Time) {
	if now.After(s.stuckTill) {
		s.stuck = nil
	}
}
