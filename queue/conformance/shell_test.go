package conformance

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/queuetest"
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
		queue.PostgreSQL: {"psql", "-v", "ON_ERROR_STOP=1", postgresDSN(), "-c"},
		queue.MySQL:      mariadbShell(t),
	}[db.Dialect]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("NOT TESTED with %s, which is not installed", args[0])
	}
	return exec.CommandContext(t.Context(), args[0], append(args[1:], statement)...)
}

func mariadbShell(t *testing.T) []string {
	t.Helper()
	dsn, err := driver.ParseDSN(mysqlDSN())
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

// Two workers on one file read the same row before they update it. Here several processes share a file, and each job
// runs once.
func TestSeveralProcessesOnOneFile_Row53(t *testing.T) {
	const jobs, workers = 5000, 3
	db := openSQLite(t)
	pushNothings(t, db, jobs)
	ran := make(chan int, workers)
	for range workers {
		cmd := child(t, db, "work off")
		go func() { ran <- number(t, cmd) }()
	}
	total := 0
	for range workers {
		total += <-ran
	}
	assert.Equal(t, jobs, total, "each job exactly once")
	assert.Zero(t, count(t, db, "jobs"))
}
