package queue

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/clitest"
	"github.com/taskd-go/task/internal/testsize"
)

func TestMain(m *testing.M) { clitest.Main(m, NewCommand(), NewWorkerCommand()) }

// limit is for a run on a busy machine.
const limit = 5 * time.Minute

// runChaos runs the command on one database and returns its table.
func runChaos(t *testing.T, args ...string) table {
	t.Helper()
	dir := t.TempDir()
	code, stdout, stderr := clitest.Run(t, limit, dir, append([]string{"queue", "--json"}, args...)...)
	var tables []table
	require.NoError(t, json.Unmarshal([]byte(stdout), &tables), stdout+stderr)
	require.Len(t, tables, 1)
	assertNoProblems(t, tables[0])
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	if len(tables[0].Rows) == 0 {
		t.Skipf("NOT TESTED: %v", tables[0].Skipped)
	}
	assert.Zero(t, code, stderr)
	return tables[0]
}

func assertNoProblems(t *testing.T, table table) {
	t.Helper()
	for _, row := range table.Rows {
		if len(row.Problems) > 0 {
			t.Errorf("%s, %s:\n%s", row.Step, row.Target, strings.Join(append(row.Problems, row.Timeline...), "\n"))
		}
	}
}

// assertMatrix checks that each target was killed at each step.
func assertMatrix(t *testing.T, table table, targets ...string) {
	t.Helper()
	assert.Len(t, table.Rows, len(steps)*len(targets))
	for _, row := range table.Rows {
		assert.Contains(t, targets, row.Target)
		assert.Positive(t, row.Kills, "%s, %s", row.Step, row.Target)
		assert.Equal(t, 2, row.Jobs)
		assert.Zero(t, row.Lost)
	}
}

func TestKillsAtEachStepLoseNothing(t *testing.T) {
	assertMatrix(t, runChaos(t, "--on", kindSQLite, "--duration", "0", "--jobs", "2"), targetWorker, targetChild)
}

// The servers of this test are private ones.
func TestKillsOfServersLoseNothing(t *testing.T) {
	testsize.NeedsFull(t, "starts and kills database servers")
	for _, kind := range []string{kindPostgres, kindMariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			table := runChaos(t, "--on", kind, "--duration", "0", "--jobs", "2")
			assertMatrix(t, table, targetWorker, targetChild, targetServer)
		})
	}
}

func TestRandomKillsLoseNothing(t *testing.T) {
	at := source{dsn: "sqlite:" + filepath.Join(t.TempDir(), "queue.db")}
	db, err := at.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	id, err := db.queue.Push(t.Context(), idle{})
	require.NoError(t, err)
	table := runChaos(t, "--dsn", at.dsn, "--duration", "2s", "--jobs", "2", "--workers", "2")
	random := table.Rows[len(table.Rows)-1]
	assert.Equal(t, "at random", random.Step)
	assert.Positive(t, random.Kills)
	assert.Positive(t, random.Jobs)
	assert.Empty(t, random.Problems)
	assert.Len(t, table.Skipped, 1)
	info, err := db.queue.Inspect(t.Context(), id)
	require.NoError(t, err)
	assert.Zero(t, info.Job.Attempts, "the job of another program is as it was")
	assert.Equal(t, 5, tablesOf(t, db), "its own tables are gone")
}

// An idle job is only pushed.
type idle struct{}

func (idle) JobType() string              { return "idle" }
func (idle) Handle(context.Context) error { return nil }

// tablesOf counts the tables of the queue, goose's apart, of every prefix.
func tablesOf(t *testing.T, db *database) (n int) {
	t.Helper()
	row := db.SQL.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' "+
		"AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%queue_migrations'")
	require.NoError(t, row.Scan(&n))
	return n
}

func TestWrongUsageIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such database": {[]string{"queue", "--on", "oracle"}, "want some of sqlite, postgres, mariadb"},
		"on two sides":     {[]string{"queue", "--on", "sqlite", "--dsn", "sqlite:x.db"}, "--on is for databases"},
		"without workers":  {[]string{"queue", "--workers", "0"}, "from 1 to 16"},
		"a negative time":  {[]string{"queue", "--duration", "-1s"}, "0 or more"},
		"a wrong dsn":      {[]string{"queue", "--dsn", "oracle://x"}, "want sqlite:"},
		"a worker by hand": {[]string{workerCommand, "{}"}, "a part of chaos"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Run(t, time.Minute, t.TempDir(), c.args...)
			assert.Equal(t, cli.ExitUsage, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.want)
		})
	}
}
