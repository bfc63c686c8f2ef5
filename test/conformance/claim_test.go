package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

const freeRow = "reserved_token IS NULL AND available_at <= 1"

// shapes are the ways to claim a row that the vectors name, {jobs} being the table.
var shapes = map[string]string{
	"UPDATE .. WHERE id = (SELECT id .. WHERE free ORDER BY id LIMIT 1)": "UPDATE {jobs} SET reserved_token = $1" +
		" WHERE id = (SELECT id FROM {jobs} WHERE " +
		freeRow + " ORDER BY id LIMIT 1) RETURNING id",
	"same, sub-select FOR UPDATE": "UPDATE {jobs} SET reserved_token = $1 WHERE id = (SELECT id FROM {jobs} WHERE " +
		freeRow + " ORDER BY id LIMIT 1 FOR UPDATE) RETURNING id",
	"same, sub-select FOR UPDATE SKIP LOCKED": "UPDATE {jobs} SET reserved_token = $1 WHERE id = (SELECT id FROM {jobs}" +
		" WHERE " + freeRow +
		" ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
	"naive sub-select plus AND free-condition repeated in the outer WHERE": "UPDATE {jobs} SET reserved_token = $1" +
		" WHERE id = (SELECT id FROM {jobs} WHERE " +
		freeRow + " ORDER BY id LIMIT 1) AND " + freeRow + " RETURNING id",
	"UPDATE .. ORDER BY id LIMIT 1": "UPDATE {jobs} SET reserved_token = $1 WHERE " + freeRow +
		" ORDER BY id LIMIT 1 RETURNING id",
	"UPDATE .. WHERE id=(SELECT .. LIMIT 1) RETURNING id": "UPDATE {jobs} SET reserved_token = $1 WHERE id = (SELECT id" +
		" FROM {jobs} WHERE " + freeRow + " LIMIT 1) RETURNING id",
}

// TestClaimVectors shows of each shape, in two sessions over one ready row, what the vectors say of
// it: why the claim of this package is as it is.
func TestClaimVectors(t *testing.T) {
	data, err := os.ReadFile("../../queue/queuetest/testdata/db_queue_claim_sql.json")
	require.NoError(t, err)
	var vectors struct {
		Cases []struct {
			DB, Shape string
			Owners    int
			Waits     int    `json:"second_session_ms"`
			Modernc   string `json:"modernc_go"`
		}
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.Len(t, vectors.Cases, len(shapes))
	for _, c := range vectors.Cases {
		t.Run(c.DB+" "+c.Shape, func(t *testing.T) {
			shape := shapes[c.Shape]
			require.NotEmpty(t, shape, "there is no test for this case")
			open := openPostgreSQL
			if c.DB == "sqlite" {
				open = openSQLite
			}
			db := open(t)
			statement := strings.ReplaceAll(shape, "{jobs}", db.Tables.Prefix+"jobs")
			_, err := db.SQL.Exec("INSERT INTO " + db.Tables.Prefix +
				`jobs (queue, payload, available_at) VALUES ('default', '{"jobType":"a","payload":{}}', 1)`)
			require.NoError(t, err)
			if c.DB == "sqlite" {
				took, err := claimed(t.Context(), db.SQL, statement, "one")
				if c.Modernc == "works" {
					require.NoError(t, err)
					assert.Equal(t, 1, took)
				} else {
					assert.ErrorContains(t, err, "syntax error")
				}
				return
			}
			owners, waited := twoSessions(t, db.SQL, statement)
			assert.Equal(t, c.Owners, owners)
			assert.Equal(t, !strings.Contains(statement, "SKIP LOCKED"), waited)
		})
	}
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// claimed is how many rows a claim took.
func claimed(ctx context.Context, x querier, statement string, args ...any) (n int, err error) {
	rows, err := x.QueryContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// twoSessions claims in a transaction that stays open until a second session has claimed, or waits
// for it.
func twoSessions(t *testing.T, db *sql.DB, statement string) (owners int, waited bool) {
	t.Helper()
	first, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer first.Rollback()
	owners, err = claimed(t.Context(), first, statement, "one")
	require.NoError(t, err)

	second, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer second.Close()
	var pid int
	require.NoError(t, second.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	type answer struct {
		n   int
		err error
	}
	done := make(chan answer, 1)
	go func() {
		n, err := claimed(t.Context(), second, statement, "two")
		done <- answer{n, err}
	}()
	var got *answer
	require.Eventually(t, func() bool {
		select {
		case a := <-done:
			got = &a
			return true
		default:
		}
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) > 0 FROM pg_locks WHERE pid = $1 AND NOT granted",
			pid).Scan(&waited)
		return err == nil && waited
	}, 20*time.Second, 2*time.Millisecond)
	require.NoError(t, first.Commit())
	if got == nil {
		a := <-done
		got = &a
	}
	require.NoError(t, got.err)
	return owners + got.n, waited
}

// TestTwoClaimsHaveOneOwner holds the very statement that a worker sends in an open transaction:
// another worker does not wait for it, and of both one has the row, whether that transaction is
// committed or not. With SQLite, which has one writer at a time, the other one waits.
func TestTwoClaimsHaveOneOwner(t *testing.T) {
	for _, d := range databases {
		for _, commit := range []bool{true, false} {
			t.Run(map[bool]string{true: d.name + " commits", false: d.name + " rolls back"}[commit], func(t *testing.T) {
				db := d.open(t)
				statement, args := claimOf(t, db)
				session := db.SQL
				if path := sqliteFile(t, db); path != "" {
					other, err := sqlite.Open(t.Context(), path, sqlite.DurabilityNormal)
					require.NoError(t, err)
					t.Cleanup(func() { other.Close() })
					session = other.Write
				}
				q := queueOver(t, db.SQL, db)
				id, err := q.PushEnvelope(t.Context(), job.Envelope{JobType: "a", Payload: []byte("{}"), MaxAttempts: 5})
				require.NoError(t, err)

				tx, err := session.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer tx.Rollback()
				took, err := claimed(t.Context(), tx, strings.ReplaceAll(statement, "{id}", id), args...)
				require.NoError(t, err)
				require.Equal(t, 1, took)

				look := func() bool {
					reg, err := job.NewRegistry(job.Func("a", func(context.Context, job.Envelope) job.Result { return job.Success() }))
					require.NoError(t, err)
					took, err := queue.NewWorker(q, reg).ProcessOne(t.Context())
					assert.NoError(t, err)
					return took
				}
				end := tx.Rollback
				if commit {
					end = tx.Commit
				}
				if db.Dialect == sqlqueue.SQLite {
					second := make(chan bool, 1)
					go func() { second <- look() }()
					require.NoError(t, end())
					assert.Equal(t, !commit, <-second)
					return
				}
				assert.False(t, look(), "it is locked, and no worker waits for it")
				require.NoError(t, end())
				if db.Dialect != sqlqueue.MySQL { // where the statement only locks, and another one writes
					assert.Equal(t, !commit, look())
				}
			})
		}
	}
}

// claimOf is the statement by which a worker locks a row, and its arguments. {id} stands for the
// row's id where it names one.
func claimOf(t *testing.T, db database) (statement string, args []any) {
	t.Helper()
	spied := spy(t, db.SQL, func(sent string, named []driver.NamedValue) {
		if statement != "" || !strings.Contains(sent, "SKIP LOCKED") &&
			!(db.Dialect == sqlqueue.SQLite && strings.Contains(sent, "reserved_token = ")) {
			return
		}
		statement = sent
		for _, a := range named {
			args = append(args, a.Value)
		}
	})
	q := queueOver(t, spied, db)
	id, err := q.PushEnvelope(t.Context(), job.Envelope{JobType: "a", Payload: []byte("{}"), MaxAttempts: 5})
	require.NoError(t, err)
	reg, err := job.NewRegistry(job.Func("a", func(context.Context, job.Envelope) job.Result { return job.Success() }))
	require.NoError(t, err)
	took, err := queue.NewWorker(q, reg, queue.Concurrency(1)).ProcessOne(t.Context())
	require.NoError(t, err)
	require.True(t, took)
	require.NotEmpty(t, statement)
	return strings.ReplaceAll(statement, "id IN ("+id+")", "id IN ({id})"), args
}
