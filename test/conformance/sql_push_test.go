package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var pushSQLCases = []sqlCase{
	{"one INSERT of queue and payload pushes a job", func(s *sqlFixture) {
		s.must("INSERT INTO " + s.table("jobs") + " (queue, payload)" +
			" VALUES ('default', '{\"jobType\":\"plain\",\"payload\":{\"name\":\"sql\"}}')")
		got := make(chan job.Envelope, 1)
		w := s.Worker(s.OpenLive(), []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.Success()
		})})
		assert.Equal(s, 1, s.Drain(w))
		e := fixture.Receive(s.Fixture, got, "the job")
		assert.True(s, strings.HasPrefix(e.JobID, "db_"), e.JobID)
		assert.Equal(s, 1, e.Attempt)
		assert.Equal(s, 5, e.MaxAttempts)
	}},
	{"columns win over the envelope's members", func(s *sqlFixture) {
		s.Insert(`{"jobType":"plain","payload":{},"attempt":4,"maxAttempts":9}`)
		s.must("UPDATE " + s.table("jobs") + " SET max_attempts = 2")
		got := make(chan job.Envelope, 9)
		w := s.Worker(s.Q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.RetryAfter(errors.New("no"), 0)
		})})
		assert.Equal(s, 2, s.Drain(w))
		first := fixture.Receive(s.Fixture, got, "the job")
		assert.Equal(s, 1, first.Attempt)
		assert.Equal(s, 2, first.MaxAttempts)
	}},
	{"PushTx shows with the commit, not before_Row72", func(s *sqlFixture) {
		sc := fixture.NewScript(s.Fixture, &fixture.Script{})
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		defer tx.Rollback()
		id, err := s.Q.Push(s.Context(), sc.Job("A"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "B"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = s.Q.PushMany(s.Context(), []queue.Job{sc.Job("C")}, sqlqueue.In(tx))
		require.NoError(s, err)
		assert.Zero(s, s.Counts("").Size())
		if s.db.Dialect != sqlqueue.SQLite { // whose one writing connection the transaction has
			assert.Zero(s, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		}
		require.NoError(s, tx.Commit())
		assert.EqualValues(s, 3, s.Counts("").Size())
		assert.NotNil(s, s.Inspect(id).Job)
	}},
	{"a rollback leaves nothing, the unique key too_Row35", func(s *sqlFixture) {
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		_, err = s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "A"), queue.Unique("k", queue.TakenReject),
			sqlqueue.In(tx))
		require.NoError(s, err)
		require.NoError(s, tx.Rollback())
		s.MustBeEmpty()
		s.Push(fixture.Envelope("plain", "B"), queue.Unique("k", queue.TakenReject))
	}},
	{"PushMany stores all or nothing_Row59", func(s *sqlFixture) {
		sc := fixture.NewScript(s.Fixture, &fixture.Script{})
		_, err := s.Q.PushMany(s.Context(), []queue.Job{sc.Job("A"), nil})
		require.Error(s, err)
		s.MustBeEmpty()
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
		_, err = q.PushMany(s.Context(), slices.Repeat([]queue.Job{sc.Job("A")}, 600)) // more than one statement's worth
		require.ErrorIs(s, err, errFault)
		s.MustBeEmpty()
		_, err = s.Q.PushMany(s.Context(), []queue.Job{sc.Job("A")}, queue.Unique("k", queue.TakenReject))
		require.Error(s, err)
		ids, err := s.Q.PushMany(s.Context(), nil)
		require.NoError(s, err)
		assert.Empty(s, ids)
	}},
	{"a database without the tables says so", func(s *sqlFixture) {
		q := s.over(s.db.SQL, sqlqueue.WithTables(sqlqueue.Tables{Prefix: s.db.Tables.Prefix + "none_"}))
		_, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"))
		require.ErrorIs(s, err, sqlqueue.ErrSchema)
		assert.ErrorContains(s, err, "taskd queue migrate")
		_, err = q.Counts(s.Context(), "")
		assert.ErrorIs(s, err, sqlqueue.ErrSchema)
		assert.ErrorIs(s, s.Worker(q, nil).Work(s.Context(), 0), sqlqueue.ErrSchema)
	}},
	{"a push in no transaction is refused", func(s *sqlFixture) {
		var config *queue.ConfigError
		_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config)
		_, err = s.Q.Push(s.Context(), fixture.Typed("plain"), sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config)
		_, err = s.Q.PushMany(s.Context(), []queue.Job{fixture.Typed("plain")}, sqlqueue.In(nil))
		assert.ErrorAs(s, err, &config)
		s.MustBeEmpty()
	}},
	{"the tries of PushMany stand in the column, which wins", func(s *sqlFixture) {
		js := make([]queue.Job, 3)
		for i := range js {
			js[i] = fixture.NewScript(s.Fixture, &fixture.Script{Times: i + 3}).Job("a")
		}
		_, err := s.Q.PushMany(s.Context(), js)
		require.NoError(s, err)
		_, err = s.Q.PushMany(s.Context(), js[:1], queue.Tries(job.Unlimited))
		require.NoError(s, err)
		list := s.List()
		require.Len(s, list, 4)
		for i, tries := range []int64{3, 4, 5, job.Unlimited} {
			assert.Equal(s, tries, s.int("SELECT max_attempts FROM "+s.table("jobs")+" WHERE id = "+list[i].ID))
		}
	}},
}
