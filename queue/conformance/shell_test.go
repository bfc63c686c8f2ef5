package conformance

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/queuetest"
	"github.com/taskd-go/task/queue/sqlite"
)

// TestOneInsertOfAShellPushesAJob is the promise of docs/tables.md, with the databases' own shells.
func TestOneInsertOfAShellPushesAJob(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			insert := "INSERT INTO " + db.Tables.Prefix + `jobs (queue, payload) VALUES ('default', '{"jobType":"mail","payload":{"userId":7}}');`
			run := shell(t, db, insert)
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)

			q, err := queue.New(db.SQL, db.Dialect, queue.WithTables(db.Tables))
			require.NoError(t, err)
			var ids []string
			reg, err := job.NewRegistry(job.Func("mail", func(_ context.Context, e job.Envelope) job.Result {
				ids = append(ids, e.JobID)
				return job.Success()
			}))
			require.NoError(t, err)
			n, err := queue.NewWorker(q, reg).WorkUntilEmpty(t.Context(), 0)
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			require.Len(t, ids, 1)
			assert.True(t, strings.HasPrefix(ids[0], "db_"), ids[0])
		})
	}
}

func shell(t *testing.T, db queuetest.Database, statement string) *exec.Cmd {
	t.Helper()
	args := map[queue.Dialect][]string{
		queue.SQLite:     {"sqlite3", sqliteFile(t, db)},
		queue.PostgreSQL: {"psql", "-v", "ON_ERROR_STOP=1", env("TASKD_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"), "-c"},
		queue.MySQL:      mariadbShell(t),
	}[db.Dialect]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("NOT TESTED with %s, which is not installed", args[0])
	}
	return exec.CommandContext(t.Context(), args[0], append(args[1:], statement)...)
}

func mariadbShell(t *testing.T) []string {
	t.Helper()
	dsn, err := driver.ParseDSN(env("TASKD_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/test"))
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(dsn.Addr)
	require.NoError(t, err)
	return []string{"mariadb", "-h" + host, "-P" + port, "-u" + dsn.User, "-p" + dsn.Passwd, dsn.DBName, "-e"}
}

// sqliteFile is where an SQLite database lies, "" for another one.
func sqliteFile(t *testing.T, db queuetest.Database) (path string) {
	if db.Dialect == queue.SQLite {
		require.NoError(t, db.SQL.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path))
	}
	return path
}

// TestSeveralProcessesOnOneFile_Row53 is two workers that share a file through pools of their own, as processes do.
func TestSeveralProcessesOnOneFile_Row53(t *testing.T) {
	const jobs, workers = 2000, 3
	path := filepath.Join(t.TempDir(), "queue.db")
	first, err := sqlite.Open(t.Context(), path, sqlite.Normal)
	require.NoError(t, err)
	t.Cleanup(func() { first.Close() })
	migrated(t, queuetest.Database{SQL: first.Write, Dialect: queue.SQLite})
	q, err := first.Queue()
	require.NoError(t, err)
	js := make([]queue.Job, jobs)
	for i := range js {
		js[i] = nothing{i}
	}
	_, err = q.PushMany(t.Context(), js)
	require.NoError(t, err)

	ran := make(chan int, 2*jobs)
	for range workers {
		child := reexec(t, path)
		go func() { ran <- child() }()
	}
	total := 0
	for range workers {
		total += <-ran
	}
	assert.Equal(t, jobs, total, "each job exactly once")
	size, err := q.Size(t.Context(), "")
	require.NoError(t, err)
	assert.Zero(t, size)
}
