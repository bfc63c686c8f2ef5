package queuetest

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var uniques = []behaviour{
	{"a taken key is refused and names who has it", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "b"), queue.Unique("k", queue.TakenReject))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		assert.Equal(s, queue.DuplicateError{Key: "k", Existing: id}, *taken)
	}},
	{"a key is one job type's, and case counts", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		s.push(envelope("other", "b"), queue.Unique("k", queue.TakenReject))
		s.push(envelope("plain", "c"), queue.Unique("K", queue.TakenReject))
	}},
	{"Existing returns the job that has the key", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenExisting))
		assert.Equal(s, id, s.push(envelope("plain", "b"), queue.Unique("k", queue.TakenExisting)))
		assert.Equal(s, []string{"a"}, s.pending())
	}},
	{"Replace takes the place of a job that waits, not of one that runs", func(s *stage) {
		old := s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReplace), queue.Delay(time.Hour))
		assert.NotEqual(s, old, s.push(envelope("plain", "b"), queue.Unique("k", queue.TakenReplace)))
		assert.Equal(s, []string{"b"}, s.pending())
		w := s.worker(s.q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			_, err := s.open().PushEnvelope(ctx, envelope("plain", "c"), queue.Unique("k", queue.TakenReplace))
			var taken *queue.DuplicateError
			assert.ErrorAs(s, err, &taken)
			return job.Success()
		})})
		assert.Equal(s, 1, s.drain(w))
		s.mustBeEmpty()
	}},
	{"of many pushes at once one gets the key", func(s *stage) {
		const callers = 8
		ids := make(chan string, callers)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				id, err := s.open().PushEnvelope(s.Context(), envelope("plain", "a"), queue.Unique("k", queue.TakenExisting))
				if assert.NoError(s, err) {
					ids <- id
				}
			})
		}
		all.Wait()
		first := receive(s, ids, "an id")
		for range callers - 1 {
			assert.Equal(s, first, receive(s, ids, "an id"))
		}
		assert.EqualValues(s, 1, s.counts("").Size())
	}},
	{"a taken key leaves the caller's transaction usable", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		tx, err := s.db.SQL.BeginTx(s.Context(), &sql.TxOptions{})
		require.NoError(s, err)
		defer tx.Rollback()
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "b"), queue.Unique("k", queue.TakenReject), sqlqueue.In(tx))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "c"), sqlqueue.In(tx))
		require.NoError(s, err)
		require.NoError(s, tx.Commit())
		assert.Equal(s, []string{"a", "c"}, s.pending())
	}},
	{"a job that is done, cancelled, cleared or dead lets its key go_Row31_Row32", func(s *stage) {
		key := queue.Unique("k", queue.TakenReject)
		s.push(envelope("plain", "done"), key)
		s.drain(s.worker(s.q, []job.Handler{newRecord().handler()}))
		id := s.push(envelope("plain", "cancelled"), key)
		require.NoError(s, s.q.Cancel(s.Context(), id))
		s.push(envelope("plain", "cleared"), key)
		_, err := s.q.Clear(s.Context(), "")
		require.NoError(s, err)
		s.push(envelope("plain", "dead"), key)
		s.drain(s.worker(s.q, nil))
		require.Len(s, s.failed(), 1)
		s.push(envelope("plain", "after"), key)
	}},
	{"what cannot be decoded lets its key go_Row35", func(s *stage) {
		s.insert("no json")
		s.db.must(s, "UPDATE "+s.table("jobs")+" SET unique_key = 'plain:k'")
		s.drain(s.worker(s.q, nil))
		require.Len(s, s.failed(), 1)
		assert.Equal(s, "db_"+s.failed()[0].Row, s.failed()[0].JobID)
		s.push(envelope("plain", "after"), queue.Unique("k", queue.TakenReject))
	}},
	{"a refused push leaves its other keys free_Row33", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "b"), queue.Unique("l", queue.TakenReject), queue.Priority(9))
		require.Error(s, err)
		s.push(envelope("plain", "c"), queue.Unique("l", queue.TakenReject))
	}},
	{"a replay whose key is taken is told and stays dead", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		s.drain(s.worker(s.q, nil))
		id := s.failed()[0].ID
		s.push(envelope("plain", "b"), queue.Unique("k", queue.TakenReject))
		var taken *queue.TakenError
		require.ErrorAs(s, s.q.Retry(s.Context(), id), &taken)
		assert.Equal(s, []string{id}, taken.IDs)
		n, err := s.q.RetryAll(s.Context(), queue.Filter{})
		assert.Zero(s, n)
		require.ErrorAs(s, err, &taken)
		assert.Len(s, s.failed(), 1)
		assert.Equal(s, []string{"b"}, s.pending())
		s.drain(s.worker(s.q, nil))
		n, err = s.q.RetryAll(s.Context(), queue.Filter{})
		assert.Equal(s, 1, n, "of two letters of one key the older one")
		require.ErrorAs(s, err, &taken)
		assert.Equal(s, []string{"a"}, s.pending())
	}},
}
