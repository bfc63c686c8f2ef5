package queue

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/clitest"
	"github.com/taskd-go/task/internal/testsize"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

func TestMain(m *testing.M) { clitest.Main(m, NewCommand(), NewWorkerCommand()) }

// runChaos runs the matrix and returns its table.
func runChaos(t *testing.T, args ...string) chaosTable {
	t.Helper()
	dir := t.TempDir()
	code, stdout, stderr := clitest.Run(t, 5*time.Minute, dir, append([]string{"queue", "--json"}, args...)...)
	require.Zero(t, code, stdout+stderr)
	var tables []chaosTable
	require.NoError(t, json.Unmarshal([]byte(stdout), &tables), stdout)
	require.Len(t, tables, 1)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	return tables[0]
}

// assertMatrix checks that each step was met, and that what must not run again did not.
func assertMatrix(t *testing.T, table chaosTable, victims ...string) {
	t.Helper()
	assert.Len(t, table.Rows, len(chaosSteps)*len(victims))
	for _, row := range table.Rows {
		assert.Contains(t, victims, row.Victim)
		assert.Positive(t, row.Kills, "%s, %s", row.Step, row.Victim)
		assert.Equal(t, 2, row.Jobs)
		assert.Zero(t, row.Lost)
		assert.Empty(t, row.Off)
		step, _ := stepNamed(row.Step)
		again, crashes := 0, 0
		if slices.Contains(step.again, row.Victim) {
			again, crashes = 1, 1
		}
		if row.Victim == victimWorker && (row.Step == "claimed" || row.Step == "moving to the dead") {
			crashes = 1 // an attempt is gone, though it did not run again
		}
		if row.Victim != victimServer && row.Because[becauseLease] == 0 { // on a busy machine a lease may be lost besides
			assert.Equal(t, again, row.Again, "%s, %s", row.Step, row.Victim)
			assert.Equal(t, crashes, row.Crashes, "%s, %s", row.Step, row.Victim)
		}
	}
}

func TestKillsAtEachStepLoseNothing(t *testing.T) {
	assertMatrix(t, runChaos(t, "--on", kindSQLite, "--duration", "0", "--jobs", "2"), victimWorker, victimChild)
}

// The servers of this test are private ones, which are killed too.
func TestKillsOfServersLoseNothing(t *testing.T) {
	testsize.NeedsFull(t, "starts and kills database servers")
	for _, kind := range []string{kindPostgres, kindMariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := clitest.Run(t, 5*time.Minute, t.TempDir(), "queue", "--json", "--on", kind, "--duration", "0", "--jobs", "2")
			var tables []chaosTable
			require.NoError(t, json.Unmarshal([]byte(stdout), &tables), stdout+stderr)
			if len(tables[0].Rows) == 0 {
				t.Skipf("NOT TESTED on %s: %v", kind, tables[0].Skipped)
			}
			require.Zero(t, code, stdout+stderr)
			assertMatrix(t, tables[0], victimWorker, victimChild, victimServer)
		})
	}
}

func TestAMissingServerProgramIsNoFailure(t *testing.T) {
	_, err := program("taskd-no-such-server", append(postgresDirs, mariadbDirs...))
	assert.ErrorIs(t, err, errNoServer)
	assert.ErrorContains(t, err, "taskd-no-such-server")
}

func TestRandomKillsLoseNothing(t *testing.T) {
	at := source{dsn: "sqlite:" + filepath.Join(t.TempDir(), "queue.db")}
	db, err := at.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	id, err := db.queue.Push(t.Context(), idle{})
	require.NoError(t, err)
	table := runChaos(t, "--dsn", at.dsn, "--duration", "2s", "--jobs", "2", "--workers", "2")
	storm := table.Rows[len(table.Rows)-1]
	assert.Equal(t, "at random", storm.Step)
	assert.Positive(t, storm.Kills)
	assert.Positive(t, storm.Jobs)
	assert.Empty(t, storm.Off)
	assert.Len(t, table.Skipped, 1)
	info, err := db.queue.Inspect(t.Context(), id)
	require.NoError(t, err)
	assert.Zero(t, info.Job.Attempts, "the operator's own job is as it was")
	assert.Equal(t, 5, tablesOf(t, db), "its own tables are gone")
}

// An idle job is only pushed.
type idle struct{}

func (idle) JobType() string              { return "idle" }
func (idle) Handle(context.Context) error { return nil }

// tablesOf counts the tables of the queue, goose's apart, of every prefix.
func tablesOf(t *testing.T, db *database) (n int) {
	t.Helper()
	row := db.sql.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%queue_migrations'")
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
		"a worker by hand": {[]string{chaosWorkerName, "{}"}, "a part of chaos queue"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Run(t, 5*time.Minute, t.TempDir(), c.args...)
			assert.Equal(t, cli.ExitUsage, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.want)
		})
	}
}

// A court is a plot of one job, for the judgement alone.
type court struct {
	*plot
	dir string
	at  int64
}

const courtJob = "job_1"

func newCourt(t *testing.T) *court {
	t.Helper()
	dir := t.TempDir()
	db, err := source{dsn: "sqlite:" + filepath.Join(dir, "queue.db")}.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	p := &plot{dir: dir, db: db, lease: time.Second, plans: map[string]*plan{courtJob: {tries: 5, stored: true}}}
	return &court{plot: p, dir: dir}
}

// ms is a time of the plot.
func ms(n int64) int64 { return n * int64(time.Millisecond) }

// writes puts effects into a file of their own.
func (c *court) writes(t *testing.T, all ...effect) {
	t.Helper()
	var b strings.Builder
	for _, e := range all {
		e.Job, e.Owner = courtJob, "w1"
		line, err := json.Marshal(e)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	c.at++
	path := filepath.Join(c.dir, strconv.FormatInt(c.at, 10)+effectsSuffix)
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

func began(at int64, attempt int, history ...pastAttempt) effect {
	return effect{At: ms(at), What: effectBegan, Attempt: attempt, PID: attempt, Alone: true, History: history}
}

func finished(at int64, attempt int) effect {
	return effect{At: ms(at), What: effectEnded, Attempt: attempt, PID: attempt}
}

func TestChaosJudgesWhatItSees(t *testing.T) {
	crashed, failed := pastAttempt{1, job.ReasonCrashed}, pastAttempt{1, job.ReasonFailed}
	killed := kill{victim: victimWorker, worker: "w1", at: ms(15)}
	beside := began(20, 2, crashed)
	beside.Alone = false
	other, otherEnd := began(20, 1), finished(30, 1)
	other.PID, otherEnd.PID = 9, 9
	failing := finished(10, 1)
	failing.Failed = true
	for name, c := range map[string]struct {
		effects []effect
		kills   []kill
		gone    int64
		off     string // part of it; empty: all is well
		because string
	}{
		"once":                            {effects: []effect{began(0, 1), finished(10, 1)}},
		"never":                           {off: "is lost"},
		"not to its end":                  {effects: []effect{began(0, 1)}, off: "is lost"},
		"again for no reason":             {effects: []effect{began(0, 1), finished(10, 1), began(20, 2, crashed), finished(30, 2)}, off: "nothing allows it"},
		"again, its worker killed":        {effects: []effect{began(0, 1), finished(10, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{killed}, because: becauseUnstored},
		"again, cut off":                  {effects: []effect{began(0, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{killed}, because: becauseCut},
		"again, another worker killed":    {effects: []effect{began(0, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{{victim: victimWorker, worker: "w2", at: ms(15)}}, off: "nothing allows it"},
		"again, its child killed":         {effects: []effect{began(0, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{{victim: victimChild, worker: "w1", pid: 1, at: ms(15)}}, because: becauseCut},
		"again, a child killed before":    {effects: []effect{began(5, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{{victim: victimChild, worker: "w1", pid: 1, at: ms(1), by: ms(2)}}, off: "nothing allows it"},
		"again, long after its end":       {effects: []effect{began(0, 1), finished(10, 1), began(5020, 2, crashed), finished(5030, 2)}, kills: []kill{{victim: victimWorker, worker: "w1", at: ms(5000)}}, off: "nothing allows it"},
		"again, the database killed":      {effects: []effect{began(0, 1), finished(10, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{{victim: victimServer, at: ms(5), by: ms(12)}}, because: becauseUnstored},
		"again, the database back before": {effects: []effect{began(10, 1), finished(12, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{{victim: victimServer, at: ms(1), by: ms(5)}}, off: "nothing allows it"},
		"again, the lease lost":           {effects: []effect{began(0, 1), {At: ms(15), What: effectUnsettled, Attempt: 1}, began(20, 2, crashed), finished(30, 2)}, because: becauseLease},
		"again after it was gone":         {effects: []effect{began(0, 1), finished(10, 1), began(20, 2, crashed), finished(30, 2)}, kills: []kill{killed}, gone: ms(12), off: "after its row was gone", because: becauseUnstored},
		"side by side":                    {effects: []effect{began(0, 1), beside, finished(30, 2)}, kills: []kill{killed}, off: "while another one ran", because: becauseCut},
		"as it was told to":               {effects: []effect{began(0, 1), failing, began(20, 2, failed), finished(30, 2)}},
		"the attempt not counted":         {effects: []effect{began(0, 1), other, otherEnd}, kills: []kill{killed}, off: "attempt 1 after attempt 1", because: becauseCut},
		"the crash not remembered":        {effects: []effect{began(0, 1), began(20, 2), finished(30, 2)}, kills: []kill{killed}, off: "a memory of []", because: becauseCut},
		"a failure that was none":         {effects: []effect{began(0, 1), finished(10, 1), began(20, 2, failed), finished(30, 2)}, off: "did not fail"},
		"a crash that was none":           {effects: []effect{began(20, 2, crashed), finished(30, 2)}, off: "nobody was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			court, row := newCourt(t), &chaosRow{mayAgain: true}
			court.writes(t, c.effects...)
			court.kills, court.plans[courtJob].gone = c.kills, c.gone
			require.NoError(t, court.judge(t.Context(), row))
			if c.off == "" {
				assert.Empty(t, row.Off)
			} else {
				assert.Contains(t, strings.Join(row.Off, "\n"), c.off)
			}
			if c.because != "" {
				assert.Equal(t, map[string]int{c.because: 1}, row.Because)
			}
		})
	}
}

func TestChaosJudgesLiveRows(t *testing.T) {
	crash := job.AttemptError{Attempt: 1, Reason: job.ReasonCrashed}
	for name, c := range map[string]struct {
		row   queue.JobInfo
		right bool
	}{
		"new":                            {queue.JobInfo{State: "ready"}, true},
		"running":                        {queue.JobInfo{State: "reserved", Attempts: 1}, true},
		"crashed":                        {queue.JobInfo{State: "ready", Attempts: 1, Crashes: 1, Failures: []job.AttemptError{crash}}, true},
		"running without an attempt":     {queue.JobInfo{State: "reserved"}, false},
		"an attempt that it forgot":      {queue.JobInfo{State: "ready", Attempts: 1}, false},
		"a crash that was not counted":   {queue.JobInfo{State: "ready", Attempts: 1, Failures: []job.AttemptError{crash}}, false},
		"a crash that it does not know":  {queue.JobInfo{State: "ready", Crashes: 1}, false},
		"an attempt that was given away": {queue.JobInfo{State: "reserved", Attempts: 1, Crashes: 1, Failures: []job.AttemptError{crash}}, false},
	} {
		assert.Equal(t, c.right, wrongAccount(c.row) == "", "%s: %s", name, wrongAccount(c.row))
	}
}
