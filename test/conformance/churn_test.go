package conformance

import (
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// Indexes grow without end. Here those of the jobs are at most three times what the live rows need.
func TestIndexesStaySmall_Row50(t *testing.T) {
	t.Parallel()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			// Between two vacuums, a minute apart, PostgreSQL's indexes keep what was churned,
			// about what as many live rows need. Twice as many leave room for a machine that gets
			// faster meanwhile.
			const first = 10_000
			minute := int(first / churn(t, db, first, nil).Minutes())
			fill(t, db, "elsewhere", future, scale(max(200_000, 2*minute), 10_000))
			live := indexSize(t, db)
			n := scale(1_000_000, 20_000)
			took := churn(t, db, n, vacuums(t, db))
			after := indexSize(t, db)
			for end := time.Now().Add(2 * time.Minute); after > 3*live && time.Now().Before(end); after = indexSize(t, db) {
				time.Sleep(time.Second) // what is deleted is purged a little later
			}
			assert.LessOrEqual(t, after, 3*live, "bytes")
			t.Logf("%d jobs in %s (%.0f/s): indexes %d KiB, before %d KiB", n, took.Round(time.Millisecond),
				float64(n)/took.Seconds(), after>>10, live>>10)
		})
	}
}

// vacuums does what PostgreSQL's own autovacuum does once a minute, where a server has it off or a
// test is over before.
func vacuums(t *testing.T, db database) func() {
	t.Helper()
	if db.Dialect != sqlqueue.PostgreSQL {
		return nil
	}
	var auto string
	require.NoError(t, db.SQL.QueryRowContext(t.Context(), "SHOW autovacuum").Scan(&auto))
	every := time.Duration(scale(int(time.Minute), 0))
	if every > 0 && auto == "on" {
		return nil
	}
	last := time.Now()
	return func() {
		if time.Since(last) >= every {
			run(t, db, "VACUUM "+db.Tables.Prefix+"jobs")
			last = time.Now()
		}
	}
}

// Nothing searches payloads, so no index has them.
func TestNoIndexHasThePayload_Row50(t *testing.T) {
	for _, d := range []sqlqueue.Dialect{sqlqueue.SQLite, sqlqueue.PostgreSQL, sqlqueue.MySQL} {
		text, err := fs.ReadFile(sqlqueue.Migrations(d, sqlqueue.Tables{}), "00001_queue.sql")
		require.NoError(t, err)
		indexes := regexp.MustCompile(`(?m)^.*\b(INDEX|KEY)\b.*$`).FindAllString(string(text), -1)
		require.NotEmpty(t, indexes)
		for _, line := range indexes {
			assert.NotRegexp(t, `payload|error\b|history`, line)
		}
	}
}

// A long transaction keeps dead rows, and the claims wade through them. Here jobs go on at half of
// their rate at least, and the table's settings let the database clean up at once after it.
func TestLongTransactionDelaysNoJob_Row51(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			if db.Dialect == sqlqueue.PostgreSQL {
				var options string
				row := db.SQL.QueryRowContext(t.Context(), "SELECT reloptions::text FROM pg_class"+
					" WHERE oid = '"+db.Tables.Prefix+"jobs'::regclass")
				require.NoError(t, row.Scan(&options))
				for _, option := range []string{"fillfactor=", "autovacuum_vacuum_scale_factor=",
					"autovacuum_vacuum_threshold=", "autovacuum_vacuum_cost_delay="} {
					assert.Contains(t, options, option)
				}
			}
			n := scale(100_000, 6_000)
			rate := func() float64 { return float64(n) / churn(t, db, n, nil).Seconds() }
			const tries = 3 // another load on the machine hits the runs differently
			for try := 1; ; try++ {
				before := rate()
				release := holdSnapshot(t, db)
				during := rate()
				release()
				if db.Dialect == sqlqueue.PostgreSQL {
					run(t, db, "VACUUM "+db.Tables.Prefix+"jobs")
				}
				t.Logf("jobs a second: %.0f before, %.0f during, %.0f after a long transaction", before, during, rate())
				if during >= before/2 || try == tries {
					assert.GreaterOrEqual(t, during, before/2)
					break
				}
			}
			assert.Zero(t, count(t, db, "jobs"))
		})
	}
}

// holdSnapshot keeps a transaction open that sees the jobs as they are now.
func holdSnapshot(t *testing.T, db database) (release func()) {
	t.Helper()
	from, opts := db.SQL, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
	if db.Dialect == sqlqueue.SQLite {
		from, opts = db.Read, nil
	}
	tx, err := from.BeginTx(t.Context(), opts)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+db.Tables.Prefix+"jobs").Scan(&n))
	return func() { require.NoError(t, tx.Rollback()) }
}

// churn pushes and works off n jobs, some at a time, and calls between after each such round.
func churn(t *testing.T, db database, n int, between func()) time.Duration {
	t.Helper()
	round := scale(5_000, 2_000)
	w := nothingWorker(t, openQueue(t, db), nil, queue.Concurrency(50))
	begin := time.Now()
	for done := 0; done < n; done += round {
		pushNothings(t, db, round)
		ran, err := w.WorkUntilEmpty(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, round, ran)
		if between != nil {
			between()
		}
	}
	return time.Since(begin)
}

// indexSize is the bytes of all indexes of jobs, without the table itself.
func indexSize(t *testing.T, db database) (bytes int64) {
	t.Helper()
	jobs := db.Tables.Prefix + "jobs"
	statement := map[sqlqueue.Dialect]string{
		sqlqueue.SQLite: "SELECT SUM(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master" +
			" WHERE type = 'index' AND tbl_name = '%s')",
		sqlqueue.PostgreSQL: "SELECT pg_indexes_size('%s')",
		sqlqueue.MySQL: "SELECT CAST(SUM(stat_value) * @@innodb_page_size AS SIGNED) FROM mysql.innodb_index_stats" +
			" WHERE database_name = DATABASE() AND table_name = '%s' " +
			"AND stat_name = 'size' AND index_name <> 'PRIMARY'",
	}[db.Dialect]
	if db.Dialect == sqlqueue.MySQL {
		run(t, db, "ANALYZE TABLE "+jobs)
	}
	require.NoError(t, db.SQL.QueryRowContext(t.Context(), fmt.Sprintf(statement, jobs)).Scan(&bytes))
	return bytes
}
