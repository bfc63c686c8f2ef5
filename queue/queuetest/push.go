package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var pushes = []behaviour{
	{"a pushed envelope comes back as it was", func(s *stage) {
		e := envelope("plain", "naïve \\ \" ? $1 ☃")
		e.Meta = map[string]any{"traceparent": "00-abc", "big": json.Number("9007199254740993")}
		s.push(e)
		got := make(chan job.Envelope, 1)
		s.drain(s.worker(s.q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.Success()
		})}))
		assert.Equal(s, e, receive(s, got, "the job"))
	}},
	{"a row holds what the options say", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.On("q"), queue.Priority(2), queue.Delay(1500*time.Microsecond), queue.Tries(7),
			queue.Backoff(3*time.Second), queue.Timeout(-1), queue.Unique("k", queue.TakenReject))
		info := s.inspect(id).Job
		require.NotNil(s, info)
		assert.Equal(s, "q", info.Queue)
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, 2, info.Priority)
		assert.Equal(s, 7, info.MaxAttempts)
		assert.Equal(s, s.now+2, info.AvailableAt.UnixMilli(), "parts of a millisecond are rounded up")
		assert.Equal(s, 3*time.Second, *info.Backoff)
		assert.Negative(s, *info.Timeout)
		assert.Equal(s, "plain:k", info.UniqueKey)
	}},
	{"one INSERT of queue and payload pushes a job", func(s *stage) {
		s.db.must(s, "INSERT INTO "+s.table("jobs")+" (queue, payload) VALUES ('default', '{\"jobType\":\"plain\",\"payload\":{\"name\":\"sql\"}}')")
		got := make(chan job.Envelope, 1)
		w := s.worker(s.real(), []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.Success()
		})})
		assert.Equal(s, 1, s.drain(w))
		e := receive(s, got, "the job")
		assert.True(s, strings.HasPrefix(e.JobID, "db_"), e.JobID)
		assert.Equal(s, 1, e.Attempt)
		assert.Equal(s, 5, e.MaxAttempts)
	}},
	{"two rows of one content are two jobs", func(s *stage) {
		s.insert(`{"jobType":"nobody","payload":{}}`)
		s.insert(`{"jobId":"","jobType":"nobody","payload":{}}`)
		s.drain(s.worker(s.q, nil))
		letters := s.failed()
		require.Len(s, letters, 2)
		assert.Equal(s, "db_"+letters[0].Row, letters[0].JobID)
		assert.Equal(s, "db_"+letters[1].Row, letters[1].JobID)
	}},
	{"columns win over the envelope's members", func(s *stage) {
		s.insert(`{"jobType":"plain","payload":{},"attempt":4,"maxAttempts":9}`)
		s.db.must(s, "UPDATE "+s.table("jobs")+" SET max_attempts = 2")
		got := make(chan job.Envelope, 9)
		w := s.worker(s.q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.RetryAfter(errors.New("no"), 0)
		})})
		assert.Equal(s, 2, s.drain(w))
		first := receive(s, got, "the job")
		assert.Equal(s, 1, first.Attempt)
		assert.Equal(s, 2, first.MaxAttempts)
	}},
	{"an envelope that had attempts keeps them", func(s *stage) {
		e := envelope("plain", "a").WithAttempt(5)
		s.push(e)
		w := s.worker(s.q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result { return job.Retry(nil) })})
		assert.Equal(s, 1, s.drain(w))
		require.Len(s, s.failed(), 1)
		assert.Equal(s, 5, s.failed()[0].Attempts)
	}},
	{"PushTx shows with the commit, not before_Row72", func(s *stage) {
		sc := newScript(s, &script{})
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		defer tx.Rollback()
		id, err := s.q.Push(s.Context(), sc.job("A"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "B"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = s.q.PushMany(s.Context(), []queue.Job{sc.job("C")}, sqlqueue.In(tx))
		require.NoError(s, err)
		assert.Zero(s, s.counts("").Size())
		if s.db.Dialect != sqlqueue.SQLite { // whose one writing connection the transaction has
			assert.Zero(s, s.drain(s.worker(s.q, scriptedHandlers)))
		}
		require.NoError(s, tx.Commit())
		assert.EqualValues(s, 3, s.counts("").Size())
		assert.NotNil(s, s.inspect(id).Job)
	}},
	{"a rollback leaves nothing, the unique key too_Row35", func(s *stage) {
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "A"), queue.Unique("k", queue.TakenReject), sqlqueue.In(tx))
		require.NoError(s, err)
		require.NoError(s, tx.Rollback())
		s.mustBeEmpty()
		s.push(envelope("plain", "B"), queue.Unique("k", queue.TakenReject))
	}},
	{"PushMany returns the ids in the order of the jobs_Row59", func(s *stage) {
		sc := newScript(s, &script{})
		var js []queue.Job
		var names []string
		for i := range 1203 { // more than two statements' worth
			names = append(names, "n"+string(rune('a'+i%26)))
			js = append(js, sc.job(names[i]))
		}
		ids, err := s.q.PushMany(s.Context(), js)
		require.NoError(s, err)
		require.Len(s, ids, len(js))
		for i, info := range s.list() {
			require.Equal(s, ids[i], info.ID)
			var j scripted
			require.NoError(s, info.Envelope.Bind(&j))
			require.Equal(s, names[i], j.Name)
		}
	}},
	{"PushMany stores what the options and each job say", func(s *stage) {
		names := []string{"naïve \\ \" ? $1 ☃", "{NULL, '\n\x1e\x00}", "<&>"}
		js := make([]queue.Job, len(names))
		for i, name := range names {
			js[i] = newScript(s, &script{tries: i + 3}).job(name)
		}
		_, err := s.q.PushMany(s.Context(), js, queue.On("q\x1e'"), queue.Priority(2), queue.Delay(1500*time.Microsecond), queue.Backoff(3*time.Second))
		require.NoError(s, err)
		_, err = s.q.PushMany(s.Context(), js[:1], queue.Timeout(time.Nanosecond), queue.Tries(job.Unlimited))
		require.NoError(s, err)
		list := s.list()
		require.Len(s, list, 4)
		for i, info := range list[:3] {
			var j scripted
			require.NoError(s, info.Envelope.Bind(&j))
			assert.Equal(s, js[i], j)
			assert.Equal(s, i+3, info.MaxAttempts)
			assert.Equal(s, "q\x1e'", info.Queue)
			assert.Equal(s, 2, info.Priority)
			assert.Zero(s, info.Attempts)
			assert.Equal(s, s.now+2, info.AvailableAt.UnixMilli())
			assert.Equal(s, s.now, info.CreatedAt.UnixMilli())
			assert.Equal(s, 3*time.Second, *info.Backoff)
			assert.Nil(s, info.Timeout)
		}
		for i, tries := range []int{3, 4, 5, job.Unlimited} { // in the column too, which wins
			var n int
			require.NoError(s, s.db.SQL.QueryRow("SELECT max_attempts FROM "+s.table("jobs")+" WHERE id = "+list[i].ID).Scan(&n))
			assert.Equal(s, tries, n)
		}
		assert.Equal(s, time.Millisecond, *list[3].Timeout)
		assert.Nil(s, list[3].Backoff)
	}},
	{"PushMany stores all or nothing_Row59", func(s *stage) {
		sc := newScript(s, &script{})
		_, err := s.q.PushMany(s.Context(), []queue.Job{sc.job("A"), nil})
		require.Error(s, err)
		s.mustBeEmpty()
		inserts := 0
		q := s.broken(func(_ context.Context, statement string) error {
			if strings.HasPrefix(statement, "INSERT INTO "+s.table("jobs")) {
				inserts++
			}
			if inserts == 2 {
				return errFault
			}
			return nil
		})
		_, err = q.PushMany(s.Context(), slices.Repeat([]queue.Job{sc.job("A")}, 600)) // more than one statement's worth
		require.ErrorIs(s, err, errFault)
		s.mustBeEmpty()
		_, err = s.q.PushMany(s.Context(), []queue.Job{sc.job("A")}, queue.Unique("k", queue.TakenReject))
		require.Error(s, err)
		ids, err := s.q.PushMany(s.Context(), nil)
		require.NoError(s, err)
		assert.Empty(s, ids)
	}},
	{"a value against the rules is an error and stores nothing", func(s *stage) {
		for name, opt := range map[string]queue.PushOption{
			"priority": queue.Priority(4), "negative priority": queue.Priority(-1), "no queue": queue.On(""),
			"a long queue": queue.On(strings.Repeat("q", 192)), "a queue of no text": queue.On("\xff"), "a queue with NUL": queue.On("a\x00"),
			"a key of no text": queue.Unique("\xff", queue.TakenReject), "no key": queue.Unique("", queue.TakenReject),
			"a long key": queue.Unique(strings.Repeat("k", 192), queue.TakenReject), "no rule": queue.Unique("k", 9),
		} {
			_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "a"), opt)
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, name)
		}
		var config *queue.ConfigError
		_, err := s.q.PushEnvelope(s.Context(), envelope("\xff", "a"))
		assert.ErrorAs(s, err, &config, "a type of no text")
		assert.ErrorAs(s, s.q.Pause(s.Context(), "\xff"), &config)
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "a"), sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.Push(s.Context(), typed{"plain"}, sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.PushMany(s.Context(), []queue.Job{typed{"plain"}}, sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.PushEnvelope(s.Context(), job.Envelope{})
		var decode *job.DecodeError
		assert.ErrorAs(s, err, &decode)
		s.mustBeEmpty()
	}},
	{"a database without the tables says so", func(s *stage) {
		q := s.over(s.db.SQL, sqlqueue.WithTables(sqlqueue.Tables{Prefix: s.db.Tables.Prefix + "none_"}))
		_, err := q.PushEnvelope(s.Context(), envelope("plain", "a"))
		require.ErrorIs(s, err, sqlqueue.ErrSchema)
		assert.ErrorContains(s, err, "taskd queue migrate")
		_, err = q.Counts(s.Context(), "")
		assert.ErrorIs(s, err, sqlqueue.ErrSchema)
		assert.ErrorIs(s, s.worker(q, nil).Work(s.Context(), 0), sqlqueue.ErrSchema)
	}},
}
