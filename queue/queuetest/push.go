package queuetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
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
			queue.Backoff(3*time.Second), queue.Timeout(-1), queue.Unique("k", queue.Reject))
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
		id, err := s.q.PushTx(s.Context(), tx, sc.job("A"))
		require.NoError(s, err)
		_, err = s.q.PushEnvelopeTx(s.Context(), tx, envelope("plain", "B"))
		require.NoError(s, err)
		_, err = s.q.PushManyTx(s.Context(), tx, []queue.Job{sc.job("C")})
		require.NoError(s, err)
		assert.Zero(s, s.counts("").Size())
		if s.db.Dialect != queue.SQLite { // whose one writing connection the transaction has
			assert.Zero(s, s.drain(s.worker(s.q, scriptedHandlers)))
		}
		require.NoError(s, tx.Commit())
		assert.EqualValues(s, 3, s.counts("").Size())
		assert.NotNil(s, s.inspect(id).Job)
	}},
	{"a rollback leaves nothing, the unique key too_Row35", func(s *stage) {
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		_, err = s.q.PushEnvelopeTx(s.Context(), tx, envelope("plain", "A"), queue.Unique("k", queue.Reject))
		require.NoError(s, err)
		require.NoError(s, tx.Rollback())
		s.mustBeEmpty()
		s.push(envelope("plain", "B"), queue.Unique("k", queue.Reject))
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
		_, err = s.q.PushMany(s.Context(), []queue.Job{sc.job("A")}, queue.Unique("k", queue.Reject))
		require.Error(s, err)
		ids, err := s.q.PushMany(s.Context(), nil)
		require.NoError(s, err)
		assert.Empty(s, ids)
	}},
	{"a value against the rules is an error and stores nothing", func(s *stage) {
		for name, opt := range map[string]queue.PushOption{
			"priority": queue.Priority(4), "negative priority": queue.Priority(-1), "no queue": queue.On(""),
			"a long queue": queue.On(strings.Repeat("q", 192)), "a queue of no text": queue.On("\xff"), "a queue with NUL": queue.On("a\x00"),
			"a key of no text": queue.Unique("\xff", queue.Reject), "no key": queue.Unique("", queue.Reject),
			"a long key": queue.Unique(strings.Repeat("k", 192), queue.Reject), "no rule": queue.Unique("k", 9),
		} {
			_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "a"), opt)
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, name)
		}
		var config *queue.ConfigError
		_, err := s.q.PushEnvelope(s.Context(), envelope("\xff", "a"))
		assert.ErrorAs(s, err, &config, "a type of no text")
		assert.ErrorAs(s, s.q.Pause(s.Context(), "\xff"), &config)
		_, err = s.q.PushEnvelopeTx(s.Context(), nil, envelope("plain", "a"))
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.PushTx(s.Context(), nil, typed{"plain"})
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.PushManyTx(s.Context(), nil, []queue.Job{typed{"plain"}})
		assert.ErrorAs(s, err, &config, "no transaction")
		_, err = s.q.PushEnvelope(s.Context(), job.Envelope{})
		var decode *job.DecodeError
		assert.ErrorAs(s, err, &decode)
		s.mustBeEmpty()
	}},
	{"a database without the tables says so", func(s *stage) {
		q, err := queue.New(s.db.SQL, s.db.Dialect, queue.WithTables(queue.Tables{Prefix: s.db.Tables.Prefix + "none_"}))
		require.NoError(s, err)
		_, err = q.PushEnvelope(s.Context(), envelope("plain", "a"))
		require.ErrorIs(s, err, queue.ErrSchema)
		assert.ErrorContains(s, err, "taskd queue migrate")
		_, err = q.Counts(s.Context(), "")
		assert.ErrorIs(s, err, queue.ErrSchema)
		assert.ErrorIs(s, s.worker(q, nil).Work(s.Context(), 0), queue.ErrSchema)
	}},
}

var uniques = []behaviour{
	{"a taken key is refused and names who has it", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Unique("k", queue.Reject))
		_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "b"), queue.Unique("k", queue.Reject))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		assert.Equal(s, queue.DuplicateError{Key: "k", Existing: id}, *taken)
	}},
	{"a key is one job type's, and case counts", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.Reject))
		s.push(envelope("other", "b"), queue.Unique("k", queue.Reject))
		s.push(envelope("plain", "c"), queue.Unique("K", queue.Reject))
	}},
	{"Existing returns the job that has the key", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Unique("k", queue.Existing))
		assert.Equal(s, id, s.push(envelope("plain", "b"), queue.Unique("k", queue.Existing)))
		assert.Equal(s, []string{"a"}, s.pending())
	}},
	{"Replace takes the place of a job that waits, not of one that runs", func(s *stage) {
		old := s.push(envelope("plain", "a"), queue.Unique("k", queue.Replace), queue.Delay(time.Hour))
		assert.NotEqual(s, old, s.push(envelope("plain", "b"), queue.Unique("k", queue.Replace)))
		assert.Equal(s, []string{"b"}, s.pending())
		w := s.worker(s.q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			_, err := s.open().PushEnvelope(ctx, envelope("plain", "c"), queue.Unique("k", queue.Replace))
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
				id, err := s.open().PushEnvelope(s.Context(), envelope("plain", "a"), queue.Unique("k", queue.Existing))
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
		s.push(envelope("plain", "a"), queue.Unique("k", queue.Reject))
		tx, err := s.db.SQL.BeginTx(s.Context(), &sql.TxOptions{})
		require.NoError(s, err)
		defer tx.Rollback()
		_, err = s.q.PushEnvelopeTx(s.Context(), tx, envelope("plain", "b"), queue.Unique("k", queue.Reject))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		_, err = s.q.PushEnvelopeTx(s.Context(), tx, envelope("plain", "c"))
		require.NoError(s, err)
		require.NoError(s, tx.Commit())
		assert.Equal(s, []string{"a", "c"}, s.pending())
	}},
	{"a job that is done, cancelled, cleared or dead lets its key go_Row31_Row32", func(s *stage) {
		key := queue.Unique("k", queue.Reject)
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
		s.push(envelope("plain", "after"), queue.Unique("k", queue.Reject))
	}},
	{"a refused push leaves its other keys free_Row33", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.Reject))
		_, err := s.q.PushEnvelope(s.Context(), envelope("plain", "b"), queue.Unique("l", queue.Reject), queue.Priority(9))
		require.Error(s, err)
		s.push(envelope("plain", "c"), queue.Unique("l", queue.Reject))
	}},
	{"a replay whose key is taken is told and stays dead", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Unique("k", queue.Reject))
		s.drain(s.worker(s.q, nil))
		id := s.failed()[0].ID
		s.push(envelope("plain", "b"), queue.Unique("k", queue.Reject))
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

var orders = []behaviour{
	{"priority, then due time, then id", func(s *stage) {
		s.push(envelope("plain", "normal later"), queue.Delay(2*time.Second))
		s.push(envelope("plain", "normal 1"))
		s.push(envelope("plain", "low"), queue.Priority(0))
		s.push(envelope("plain", "urgent"), queue.Priority(3))
		s.push(envelope("plain", "normal 2"))
		s.push(envelope("plain", "high"), queue.Priority(2))
		s.push(envelope("plain", "urgent, but not due"), queue.Priority(3), queue.Delay(time.Hour))
		s.at(3)
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1)))
		assert.Equal(s, []string{"urgent", "high", "normal 1", "normal 2", "normal later", "low"}, r.take())
	}},
	{"a worker takes from its queues only, the first one first", func(s *stage) {
		for _, q := range []string{"low", "default", "critical", "other"} {
			s.push(envelope("plain", q+" 1"), queue.On(q))
			s.push(envelope("plain", q+" 2"), queue.On(q))
		}
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1), queue.Queues("critical, default,low")))
		assert.Equal(s, []string{"critical 1", "critical 2", "default 1", "default 2", "low 1", "low 2"}, r.take())
		assert.EqualValues(s, 2, s.counts("other").Ready)
	}},
	{"a batch that is taken at once keeps the order", func(s *stage) {
		var want []string
		for i := range 20 {
			name := string(rune('a' + i))
			want = append(want, name)
			s.push(envelope("plain", name))
		}
		r := newRecord()
		n, err := s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(7)).WorkUntilEmpty(s.Context(), 5)
		require.NoError(s, err)
		assert.Equal(s, 5, n)
		assert.ElementsMatch(s, want[:5], r.take())
		assert.EqualValues(s, 15, s.counts("").Ready, "no more are taken than may be")
	}},
	{"weights share, and starve none", func(s *stage) {
		for range 200 {
			s.push(envelope("plain", "a"), queue.On("a"))
			s.push(envelope("plain", "b"), queue.On("b"))
		}
		r := newRecord()
		_, err := s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1), queue.Queues("a:3,b:1")).WorkUntilEmpty(s.Context(), 120)
		require.NoError(s, err)
		b := 0
		for _, name := range r.take() {
			if name == "b" {
				b++
			}
		}
		assert.Greater(s, b, 10, "a quarter of 120 is 30")
		assert.Less(s, b, 60)
	}},
	{"wrong queues are an error of the worker", func(s *stage) {
		for _, spec := range []string{"", "a,,b", "a:0", "a:x", "a,a", "a:-1"} {
			_, err := s.worker(s.q, nil, queue.Queues(spec)).ProcessOne(s.Context())
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, spec)
		}
	}},
}
