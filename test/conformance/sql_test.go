package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
	"github.com/taskd-go/task/queue/queuetest"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A database is where tests run: with the queue's tables in it, and nothing in those.
type database struct {
	SQL     *sql.DB
	Read    *sql.DB // nil: SQL
	Dialect sqlqueue.Dialect
	Tables  sqlqueue.Tables
	Channel string // for sqlqueue.WithNotify; "": none

	// Waking opens a store that wakes its workers; nil: there is none.
	Waking func(opts ...sqlqueue.Option) (backend.Backend, error)
}

// A clockTable holds the time of the queues under test.
type clockTable struct {
	db   database
	name string
}

func newClock(t testing.TB, db database) clockTable {
	c := clockTable{db, db.Tables.Prefix + "test_clock"}
	run(t, db, "CREATE TABLE "+c.name+" (ms BIGINT NOT NULL)")
	t.Cleanup(func() { db.SQL.Exec("DROP TABLE " + c.name) })
	run(t, db, "INSERT INTO "+c.name+" (ms) VALUES (0)")
	return c
}

func (c clockTable) option() sqlqueue.Option {
	return sqlqueue.WithClock("(SELECT ms FROM " + c.name + ")")
}

func (c clockTable) set(t testing.TB, now time.Time) {
	run(t, c.db, fmt.Sprintf("UPDATE %s SET ms = %d", c.name, now.UnixMilli()))
}

// runSuite runs what every store must pass, and what an SQL store must pass besides.
func runSuite(t *testing.T, db database) {
	if db.Read == nil {
		db.Read = db.SQL
	}
	clock := newClock(t, db)
	h := harnessOf(db, clock)
	queuetest.Run(t, h)
	own := fixture.Harness{SetClock: h.SetClock, Clear: h.Clear, Insert: h.Insert}
	own.Open = func(t testing.TB, how fixture.Opening) backend.Backend { return h.Open(t, queuetest.Opening(how)) }
	for _, g := range []struct {
		name  string
		cases []sqlCase
	}{
		{"SQL push", pushSQLCases}, {"SQL unique", uniqueSQLCases}, {"SQL work", workSQLCases}, {"SQL lease", leaseSQLCases},
		{"SQL replay", replaySQLCases}, {"faults", faultSQLCases}, {"outage", outageSQLCases}, {"announcements",
			notifySQLCases}, {"found", foundSQLCases},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.test(&sqlFixture{fixture.New(t, own), db, clock}) })
			}
		})
	}
	h.Clear(t)
}

func harnessOf(db database, clock clockTable) queuetest.Harness {
	return queuetest.Harness{
		Open: func(t testing.TB, how queuetest.Opening) backend.Backend {
			opts := []sqlqueue.Option{sqlqueue.WithTables(db.Tables), sqlqueue.WithReader(db.Read)}
			if !how.OwnClock {
				opts = append(opts, clock.option())
			}
			var store backend.Backend
			var err error
			if how.Wakes && db.Waking != nil {
				store, err = db.Waking(opts...)
			} else {
				store, err = sqlqueue.New(db.SQL, db.Dialect, opts...)
			}
			require.NoError(t, err)
			return store
		},
		SetClock: clock.set,
		Clear: func(t testing.TB) {
			for _, name := range []string{"jobs", "failed_jobs", "queue_control", "queue_locks", "queue_holds"} {
				run(t, db, "DELETE FROM "+db.Tables.Prefix+name)
			}
		},
		Insert: func(t testing.TB, queue string, payload []byte) {
			statement := fmt.Sprintf("INSERT INTO %sjobs (queue, payload, available_at) SELECT %s, %s, ms FROM %s",
				db.Tables.Prefix,
				db.placeholder(1, "text"), db.placeholder(2, "text"), clock.name)
			_, err := db.SQL.Exec(statement, queue, string(payload))
			require.NoError(t, err)
		},
	}
}

// placeholder is the n-th one, of a type where the database must know it.
func (db database) placeholder(n int, kind string) string {
	if db.Dialect == sqlqueue.PostgreSQL {
		return fmt.Sprintf("CAST($%d AS %s)", n, kind)
	}
	return "?"
}

type sqlCase struct {
	name string
	test func(s *sqlFixture)
}

// An sqlFixture is a fixture whose tables can be looked into.
type sqlFixture struct {
	*fixture.Fixture
	db    database
	clock clockTable
}

func (s *sqlFixture) must(statement string, args ...any) {
	s.Helper()
	_, err := s.db.SQL.ExecContext(s.Context(), statement, args...)
	require.NoError(s, err, statement)
}

func (s *sqlFixture) table(name string) string { return s.db.Tables.Prefix + name }

func (s *sqlFixture) int(query string, args ...any) (n int64) {
	s.Helper()
	require.NoError(s, s.db.SQL.QueryRowContext(s.Context(), query, args...).Scan(&n))
	return n
}

// over is a queue in the fixture's tables over a pool of connections.
func (s *sqlFixture) over(db *sql.DB, opts ...sqlqueue.Option) *queue.Queue {
	s.Helper()
	return queueOver(s, db, s.db, opts...)
}

// spy is db with a look at each statement before it is sent.
func spy(t testing.TB, db *sql.DB, look func(statement string, args []driver.NamedValue)) *sql.DB {
	return hookedPool(t, db, func(_ context.Context, c *sqltest.Call) error {
		look(c.Statement, c.Args)
		return nil
	})
}

func hookedPool(t testing.TB, db *sql.DB, before func(context.Context, *sqltest.Call) error) *sql.DB {
	wrapped := sqltest.Wrap(db, sqltest.Hooks{Before: before})
	t.Cleanup(func() { wrapped.Close() })
	return wrapped
}

var errFault = errors.New("injected fault")

// broken is a queue with a hook before each statement, "BEGIN" and "COMMIT" too. What the hook
// returns is the statement's error, and it did not reach the database.
func (s *sqlFixture) broken(hook func(ctx context.Context, statement string) error) *queue.Queue {
	s.Helper()
	return s.hooked(func(ctx context.Context, c *sqltest.Call) error { return hook(ctx, c.Statement) })
}

func (s *sqlFixture) hooked(before func(context.Context, *sqltest.Call) error) *queue.Queue {
	s.Helper()
	return s.over(hookedPool(s, s.db.SQL, before), sqlqueue.WithReader(hookedPool(s, s.db.Read, before)), s.clock.option())
}

// A tooLarge error is what each database says of a value that it cannot take.
type tooLarge struct{}

func (tooLarge) Error() string {
	return "Error 1153: packet too big; string or blob too big (18)"
}
func (tooLarge) SQLState() string { return "54000" }

// isRenewal tells the statement that renews leases.
func isRenewal(statement string) bool { return strings.Contains(statement, "SET lease_until = ") }

// completes tells the statement that removes finished jobs.
func (s *sqlFixture) completes(statement string) bool {
	return strings.HasPrefix(statement, "DELETE FROM "+s.table("jobs"))
}

// brokenArgs is broken for a hook that sees the arguments as one text too.
func (s *sqlFixture) brokenArgs(hook func(statement, args string) error) *queue.Queue {
	s.Helper()
	return s.hooked(func(_ context.Context, c *sqltest.Call) error { return hook(c.Statement, fmt.Sprint(c.Args)) })
}
