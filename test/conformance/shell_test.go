package conformance

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
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

			q := queueOver(t, db.SQL, db)
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

// TestTheClaimOfTheDocumentTakesAJob runs the statement that docs/tables.md gives to other
// languages.
func TestTheClaimOfTheDocumentTakesAJob(t *testing.T) {
	doc, err := os.ReadFile("../../docs/tables.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(doc), "    UPDATE jobs\n")
	require.True(t, found)
	statement, _, found := strings.Cut("UPDATE jobs\n"+rest, ";")
	require.True(t, found)
	for _, d := range databases[:2] { // the document describes MySQL's way in words
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			q := queueOver(t, db.SQL, db)
			id, err := q.PushEnvelope(t.Context(), job.Envelope{JobType: "mail", Payload: []byte("{}"), MaxAttempts: 5})
			require.NoError(t, err)
			text := strings.NewReplacer("jobs", db.Tables.Prefix+"jobs", ":token", "'other.1'", ":now",
				strconv.FormatInt(time.Now().UnixMilli()+1000, 10)).Replace(statement)
			if db.Dialect == sqlqueue.SQLite {
				text = strings.Replace(text, "FOR UPDATE SKIP LOCKED", "", 1)
			}
			for _, want := range []int{1, 0} {
				took, err := claimed(t.Context(), db.SQL, text)
				require.NoError(t, err)
				assert.Equal(t, want, took)
			}
			record, err := q.Inspect(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, []any{"reserved", "other", 1}, []any{record.Job.State, record.Job.ReservedBy, record.Job.Attempts})
		})
	}
}

func shell(t *testing.T, db database, statement string) *exec.Cmd {
	t.Helper()
	args := map[sqlqueue.Dialect][]string{
		sqlqueue.SQLite:     {"sqlite3", sqliteFile(t, db)},
		sqlqueue.PostgreSQL: {"psql", "-v", "ON_ERROR_STOP=1", postgresDSN(), "-c"},
		sqlqueue.MySQL:      mariadbShell(t),
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
func sqliteFile(t *testing.T, db database) (path string) {
	if db.Dialect == sqlqueue.SQLite {
		require.NoError(t, db.SQL.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path))
	}
	return path
}

// Two workers on one file read the same row before they update it. Here several processes share a
// file, and each job runs once.
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
