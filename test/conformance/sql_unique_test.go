package conformance

import (
	"database/sql"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var uniqueSQLCases = []sqlCase{
	{"a taken key leaves the caller's transaction usable", func(s *sqlFixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Unique("k", queue.TakenReject))
		tx, err := s.db.SQL.BeginTx(s.Context(), &sql.TxOptions{})
		require.NoError(s, err)
		defer tx.Rollback()
		_, err = s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "b"), queue.Unique("k", queue.TakenReject),
			sqlqueue.In(tx))
		var taken *queue.DuplicateError
		require.ErrorAs(s, err, &taken)
		_, err = s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "c"), sqlqueue.In(tx))
		require.NoError(s, err)
		require.NoError(s, tx.Commit())
		assert.Equal(s, []string{"a", "c"}, s.Pending())
	}},
	{"what cannot be decoded lets its key go_Row35", func(s *sqlFixture) {
		s.Insert("no json")
		s.must("UPDATE " + s.table("jobs") + " SET unique_key = 'plain:k'")
		s.Drain(s.Worker(s.Q, nil))
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, "db_"+s.DeadLetters()[0].Row, s.DeadLetters()[0].JobID)
		s.Push(fixture.Envelope("plain", "after"), queue.Unique("k", queue.TakenReject))
	}},
}
