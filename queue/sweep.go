package queue

import (
	"context"
	"errors"

	"github.com/taskd-go/task/queue/backend"
)

// sweep ends lapsed reservations of any queue and type, except those of this worker. It makes their
// jobs due again, or dead if afterLapse says so.
func (s *session) sweep(ctx context.Context) error {
	sweeper, ok := s.consumer.(backend.Sweeper)
	if !ok {
		return nil
	}
	keep := s.reserved()
	for {
		lapsed, full, err := sweeper.Lapsed(ctx, keep)
		if err != nil || len(lapsed) == 0 {
			return err
		}
		goOn, err := s.endLapsed(ctx, lapsed)
		if err != nil || !goOn || !full {
			return err
		}
	}
}

// endLapsed completes lapsed deliveries. It tries those that fail together one by one, so that one
// bad delivery holds up no other. A second bad one counts as a failure of the store, whose error it
// returns. goOn is false if the next call of Lapsed would return the same deliveries again.
func (s *session) endLapsed(ctx context.Context, lapsed []backend.Delivery) (goOn bool, err error) {
	ends, stored := make([]completion, len(lapsed)), make([]backend.Completion, len(lapsed))
	for i := range lapsed {
		ends[i] = afterLapse(&lapsed[i], s.runner.Policy)
		stored[i] = ends[i].stored()
	}
	errs := s.consumer.Complete(ctx, stored)
	bad, ended := 0, 0
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
			ended++
			s.swept(&ends[i])
		case errors.Is(err, backend.ErrLost): // its worker has completed or renewed it since
		case bad > 0 || ctx.Err() != nil:
			return false, err
		default:
			bad++
			s.q.logger.Warn("queue: a lapsed reservation cannot be ended", "job", lapsed[i].ID, "error", err)
		}
	}
	return bad == 0 || ended > 0, nil
}
