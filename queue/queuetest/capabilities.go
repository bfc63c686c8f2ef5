package queuetest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/assert"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
)

var capabilities = []behaviour{
	{"what the store cannot do is refused by its name, and stores nothing", func(s *fixture.Fixture) {
		can := s.Q.Backend().Can()
		for name, c := range map[string]struct {
			can bool
			opt queue.PushOption
		}{
			"delay": {can.Delay, queue.Delay(time.Hour)}, "priority": {can.Priority, queue.Priority(3)},
			"unique key": {can.Unique, queue.Unique("k", queue.TakenReject)},
		} {
			_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), c.opt)
			if c.can {
				assert.NoError(s, err, name)
				continue
			}
			assert.ErrorIs(s, err, queue.ErrUnsupported, name)
			assert.ErrorContains(s, err, s.Q.Backend().Name(), name)
		}
		_, isControl := s.Q.Backend().(backend.Control)
		_, isAdmin := s.Q.Backend().(backend.Admin)
		_, isLocker := s.Q.Backend().(backend.Locker)
		ctx := s.Context()
		_, inspect := s.Q.Inspect(ctx, "1")
		_, _, acquire := s.Q.Locks().Acquire(ctx, "k", "owner", 1, time.Minute)
		for name, c := range map[string]struct {
			can bool
			err error
		}{
			"pause": {isControl, s.Q.Pause(ctx, "other")}, "inspect": {isAdmin, inspect}, "locks": {isLocker, acquire},
		} {
			assert.Equal(s, !c.can, errors.Is(c.err, queue.ErrUnsupported), "%s: %v", name, c.err)
		}
	}},
	{"the sync driver refuses the locks of middleware", func(s *fixture.Fixture) {
		var locks middleware.Store = queue.NewSync(nil).Locks()
		_, _, err := locks.Take(s.Context(), "k", 1, time.Second)
		assert.ErrorIs(s, err, queue.ErrUnsupported)
	}},
}
