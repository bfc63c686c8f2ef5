package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/queuetest"
)

const (
	planFuture = 50_000
	planReady  = 2_000
)

// TestClaimUsesItsIndex looks at the plan of the claim over many rows that are not due, and at what claims cost.
func TestClaimUsesItsIndex(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			jobs := db.Tables.Prefix + "jobs"
			fill(t, db, jobs)
			q, err := queue.New(db.SQL, db.Dialect, queue.WithTables(db.Tables))
			require.NoError(t, err)

			plan := explain(t, db, jobs)
			assert.Contains(t, plan, jobs+"_claim", plan)
			reg, err := job.NewRegistry(job.Func("nothing", func(context.Context, job.Envelope) job.Result { return job.Success() }))
			require.NoError(t, err)
			w := queue.NewWorker(q, reg, queue.Concurrency(1))
			var took []time.Duration
			for range 100 {
				begin := time.Now()
				ok, err := w.ProcessOne(t.Context())
				took = append(took, time.Since(begin))
				require.NoError(t, err)
				require.True(t, ok)
			}
			slices.Sort(took)
			t.Logf("a job by itself, from the claim to its end stored: p50 %s, p99 %s over %d future and %d ready rows",
				took[50], took[99], planFuture, planReady)

			begin := time.Now()
			c, err := q.Counts(t.Context(), "default")
			require.NoError(t, err)
			assert.EqualValues(t, planFuture, c.Delayed)
			t.Logf("Counts: %s", time.Since(begin))
		})
	}
}

// fill inserts rows by doubling, which is quick everywhere.
func fill(t *testing.T, db queuetest.Database, jobs string) {
	const payload = `{"jobType":"nothing","payload":{}}`
	insert := func(n int, availableAt int64) {
		_, err := db.SQL.Exec(fmt.Sprintf("INSERT INTO %s (queue, payload, available_at) VALUES ('default', '%s', %d)", jobs, payload, availableAt))
		require.NoError(t, err)
		for have := 1; have < n; {
			more := min(have, n-have)
			_, err := db.SQL.Exec(fmt.Sprintf("INSERT INTO %s (queue, payload, available_at) SELECT queue, payload, available_at FROM (SELECT * FROM %s WHERE available_at = %d LIMIT %d) x",
				jobs, jobs, availableAt, more))
			require.NoError(t, err)
			have += more
		}
	}
	insert(planFuture, 9_000_000_000_000)
	insert(planReady, 1)
	if db.Dialect == queue.SQLite {
		return // its planner follows the index without statistics
	}
	analyze := map[queue.Dialect]string{queue.PostgreSQL: "ANALYZE ", queue.MySQL: "ANALYZE TABLE "}[db.Dialect]
	_, err := db.SQL.Exec(analyze + jobs)
	require.NoError(t, err)
}

// explain is the plan of a claim's look at one level, taken from the statement that a worker sent.
func explain(t *testing.T, db queuetest.Database, jobs string) string {
	t.Helper()
	var sent string
	var sentArgs []driver.NamedValue
	spied := queuetest.Spy(t, db.SQL, func(statement string, args []driver.NamedValue) {
		if sent == "" && strings.Contains(statement, "LIMIT") && strings.Contains(statement, "available_at <=") {
			sent, sentArgs = statement, args
		}
	})
	q, err := queue.New(spied, db.Dialect, queue.WithTables(db.Tables))
	require.NoError(t, err)
	_, err = queue.NewWorker(q, nil, queue.Queues("empty")).ProcessOne(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, sent)
	verb := map[queue.Dialect]string{queue.SQLite: "EXPLAIN QUERY PLAN ", queue.PostgreSQL: "EXPLAIN ", queue.MySQL: "EXPLAIN "}[db.Dialect]
	args := make([]any, len(sentArgs))
	for i, a := range sentArgs {
		args[i] = a.Value
	}
	rows, err := db.SQL.Query(verb+sent, args...)
	require.NoError(t, err)
	defer rows.Close()
	return table(t, rows)
}

func table(t *testing.T, rows *sql.Rows) string {
	columns, err := rows.Columns()
	require.NoError(t, err)
	var b strings.Builder
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		for _, v := range values {
			b.WriteString(v.String + " ")
		}
		b.WriteString("\n")
	}
	require.NoError(t, rows.Err())
	return b.String()
}
