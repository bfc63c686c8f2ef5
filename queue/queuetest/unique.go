package queuetest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var uniques = []behaviour{
	{"a taken key is refused and names who has it", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "b"), queue.Unique("k", queue.TakenReject))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		assert.Equal(s, queue.DuplicateError{Key: "k", Existing: id}, *taken)
	}},
	{"a key is one job type's, and case counts", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		s.Push(fixture.Envelope("other", "b"), queue.Unique("k", queue.TakenReject))
		s.Push(fixture.Envelope("plain", "c"), queue.Unique("K", queue.TakenReject))
	}},
	{"Existing returns the job that has the key", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenExisting))
		assert.Equal(s, id, s.Push(fixture.Envelope("plain", "b"), queue.Unique("k", queue.TakenExisting)))
		assert.Equal(s, []string{"a"}, s.Pending())
	}},
	{"Replace takes the place of a job that waits, not of one that runs", func(s *fixture.Fixture) {
		old := s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReplace), queue.Delay(time.Hour))
		assert.NotEqual(s, old, s.Push(fixture.Envelope("plain", "b"), queue.Unique("k", queue.TakenReplace)))
		assert.Equal(s, []string{"b"}, s.Pending())
		w := s.Worker(s.Q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			_, err := s.Open().PushEnvelope(ctx, fixture.Envelope("plain", "c"), queue.Unique("k", queue.TakenReplace))
			var taken *queue.DuplicateError
			assert.ErrorAs(s, err, &taken)
			return job.Success()
		})})
		assert.Equal(s, 1, s.Drain(w))
		s.MustBeEmpty()
	}},
	{"of many pushes at once one gets the key", func(s *fixture.Fixture) {
		const callers = 8
		ids := make(chan string, callers)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				id, err := s.Open().PushEnvelope(s.Context(), fixture.Envelope("plain", "a"),
					queue.Unique("k", queue.TakenExisting))
				if assert.NoError(s, err) {
					ids <- id
				}
			})
		}
		all.Wait()
		first := fixture.Receive(s, ids, "an id")
		for range callers - 1 {
			assert.Equal(s, first, fixture.Receive(s, ids, "an id"))
		}
		assert.EqualValues(s, 1, s.Counts("").Size())
	}},
	{"a job that is done, cancelled, cleared or dead lets its key go_Row31_Row32", func(s *fixture.Fixture) {
		key := queue.Unique("k", queue.TakenReject)
		s.Push(fixture.Envelope("plain", "done"), key)
		s.Drain(s.Worker(s.Q, []job.Handler{fixture.NewRecord().Handler()}))
		id := s.Push(fixture.Envelope("plain", "cancelled"), key)
		require.NoError(s, s.Q.Cancel(s.Context(), id))
		s.Push(fixture.Envelope("plain", "cleared"), key)
		_, err := s.Q.Clear(s.Context(), "")
		require.NoError(s, err)
		s.Push(fixture.Envelope("plain", "dead"), key)
		s.Drain(s.Worker(s.Q, nil))
		require.Len(s, s.DeadLetters(), 1)
		s.Push(fixture.Envelope("plain", "after"), key)
	}},
	{"a refused push leaves its other keys free_Row33", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "b"), queue.Unique("l", queue.TakenReject),
			queue.Priority(9))
		require.Error(s, err)
		s.Push(fixture.Envelope("plain", "c"), queue.Unique("l", queue.TakenReject))
	}},
	{"a replay whose key is taken is told and stays dead", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		s.Drain(s.Worker(s.Q, nil))
		id := s.DeadLetters()[0].ID
		s.Push(fixture.Envelope("plain", "b"), queue.Unique("k", queue.TakenReject))
		var taken *queue.TakenError
		require.ErrorAs(s, s.Q.Retry(s.Context(), id), &taken)
		assert.Equal(s, []string{id}, taken.IDs)
		n, err := s.Q.RetryAll(s.Context(), queue.Filter{})
		assert.Zero(s, n)
		require.ErrorAs(s, err, &taken)
		assert.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, []string{"b"}, s.Pending())
		s.Drain(s.Worker(s.Q, nil))
		n, err = s.Q.RetryAll(s.Context(), queue.Filter{})
		assert.Equal(s, 1, n, "of two letters of one key the older one")
		require.ErrorAs(s, err, &taken)
		assert.Equal(s, []string{"a"}, s.Pending())
	}},
}
