package conformance

import (
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/testsize"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// scale is the size of a test. A short one says as much about what is right and less about what is
// fast.
func scale(huge, short int) int { return testsize.Of(huge, short) }

// series is a table s with a column n that counts from 1 to n.
func series(d sqlqueue.Dialect, n int) string {
	switch d {
	case sqlqueue.PostgreSQL:
		return fmt.Sprintf("generate_series(1, %d) AS s(n)", n)
	case sqlqueue.MySQL:
		return fmt.Sprintf("(SELECT seq AS n FROM seq_1_to_%d) AS s", n)
	}
	return fmt.Sprintf("(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n"+
		" FROM c) AS s", n)
}

func run(t testing.TB, db database, statement string) {
	t.Helper()
	_, err := db.SQL.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

// fill inserts n jobs that do nothing, over all priorities. due is an expression of s.n for when
// they are due.
func fill(t testing.TB, db database, name, due string, n int) {
	t.Helper()
	run(t, db, fmt.Sprintf(`INSERT INTO %sjobs (queue, payload, priority, available_at)
		SELECT '%s', '{"jobType":"nothing","payload":{"n":1}}', s.n %% 4, %s FROM %s`, db.Tables.Prefix, name, due, series(db.Dialect, n)))
}

const (
	past   = "s.n"
	future = "9000000000000 + s.n"
)

// bury inserts n dead letters, each of its own age.
func bury(t testing.TB, db database, n int) {
	t.Helper()
	run(t, db, fmt.Sprintf(`INSERT INTO %sfailed_jobs (job, queue, job_id, job_type, payload, error_class, error, reason, history, failed_by,
			attempts, crashes, replays, priority, created_at, failed_at)
		SELECT 20000000000 + s.n, 'default', CONCAT('job_', s.n), 'nothing', '%s', 'net.OpError', '%s', 'failed', '[]', 'host-1-0', 5, 0, 0, 1, s.n, s.n
		FROM %s`, db.Tables.Prefix, `{"jobType":"nothing","payload":{"text":"`+strings.Repeat("x", 200)+`"}}`, strings.Repeat("refused ", 20),
		series(db.Dialect, n)))
}

// analyze makes the planner see what was filled in, as the servers do by themselves after a while.
// SQLite never does.
func analyze(t testing.TB, db database) {
	t.Helper()
	for _, table := range []string{"jobs", "failed_jobs"} {
		switch db.Dialect {
		case sqlqueue.PostgreSQL:
			run(t, db, "VACUUM ANALYZE "+db.Tables.Prefix+table)
		case sqlqueue.MySQL:
			run(t, db, "ANALYZE TABLE "+db.Tables.Prefix+table)
		}
	}
}

func count(t testing.TB, db database, table string) (n int) {
	t.Helper()
	require.NoError(t, db.SQL.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+db.Tables.Prefix+table).Scan(&n))
	return n
}

func openQueue(t testing.TB, db database, opts ...sqlqueue.Option) *queue.Queue {
	t.Helper()
	if db.Read != nil {
		opts = append([]sqlqueue.Option{sqlqueue.WithReader(db.Read)}, opts...)
	}
	return queueOver(t, db.SQL, db, opts...)
}

// queueOver is a queue in the tables of db over a pool of connections.
func queueOver(t testing.TB, pool *sql.DB, db database, opts ...sqlqueue.Option) *queue.Queue {
	t.Helper()
	store, err := sqlqueue.New(pool, db.Dialect, append([]sqlqueue.Option{sqlqueue.WithTables(db.Tables)}, opts...)...)
	require.NoError(t, err)
	return queue.New(store, queue.Logger(slog.New(slog.DiscardHandler)))
}

// pushNothings pushes n jobs that do nothing.
func pushNothings(t testing.TB, db database, n int) {
	t.Helper()
	js := make([]queue.Job, n)
	for i := range js {
		js[i] = nothing{i}
	}
	_, err := openQueue(t, db).PushMany(t.Context(), js)
	require.NoError(t, err)
}
