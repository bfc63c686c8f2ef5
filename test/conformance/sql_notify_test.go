package conformance

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var notifySQLCases = []sqlCase{
	{"pushes are announced once in 100 ms for each queue_Row55", func(s *sqlFixture) {
		if s.db.Channel == "" {
			s.Skip("this database announces nothing")
		}
		notified := map[string]int64{}
		db := spy(s.T, s.db.SQL, func(statement string, args []driver.NamedValue) {
			if strings.Contains(statement, "pg_notify") {
				notified[fmt.Sprint(args[len(args)-1].Value)]++
			}
		})
		q := s.over(db, sqlqueue.WithNotify(s.db.Channel))
		begin := time.Now()
		for i := range 300 {
			_, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.On(fmt.Sprintf("q%d", i%3)))
			require.NoError(s, err)
		}
		assert.Len(s, notified, 3)
		for name, n := range notified {
			assert.LessOrEqual(s, n, time.Since(begin).Milliseconds()/100+1, name)
		}
	}},
	{"what is not told yet, or never, holds no announcement up", func(s *sqlFixture) {
		if s.db.Channel == "" {
			s.Skip("this database announces nothing")
		}
		told := make(chan string, 100)
		ctx, stop := context.WithCancel(s.Context())
		store, err := s.db.Waking(sqlqueue.WithTables(s.db.Tables))
		require.NoError(s, err)
		wait := s.Start(func() error { return store.(backend.Waker).Wait(ctx, func(name string) { told <- name }) })
		assert.Empty(s, fixture.Receive(s.Fixture, told, "the first wake-up"))
		q := s.over(s.db.SQL, sqlqueue.WithNotify(s.db.Channel), s.clock.option())
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		defer tx.Rollback()
		_, err = q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.On("committed late"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.On("committed late"))
		require.NoError(s, err)
		assert.Equal(s, "committed late", fixture.Receive(s.Fixture, told, "the announcement"))

		unique := func(key string) string {
			id, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.On("unique"),
				queue.Unique(key, queue.TakenExisting))
			require.NoError(s, err)
			return id
		}
		_, err = s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.Unique("taken", queue.TakenReject))
		require.NoError(s, err)
		unique("taken")
		unique("free")
		assert.Equal(s, "unique", fixture.Receive(s.Fixture, told, "the announcement"))
		stop()
		require.ErrorIs(s, wait(), context.Canceled)
	}},
}
