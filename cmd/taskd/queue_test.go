package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/queuecmd"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
	"github.com/taskd-go/task/internal/programtest"
	"github.com/taskd-go/task/queue"
)

// A jobs is the queue of one test, and the folder of its processes.
type jobs struct {
	t   *testing.T
	dir string
	dsn string
	env []string // of its processes
}

func newJobs(t *testing.T) *jobs {
	t.Helper()
	dir := shortTempDir(t)
	return &jobs{t: t, dir: dir, dsn: "sqlite:" + filepath.Join(dir, "queue.db")}
}

// start starts a queue command.
func (j *jobs) start(args ...string) *programtest.Program {
	j.t.Helper()
	return launch(j.t, j.dir, j.env, append([]string{"queue", "--dsn", j.dsn}, args...)...)
}

func (j *jobs) run(args ...string) (code int, stdout, stderr string) {
	j.t.Helper()
	return j.start(args...).Wait()
}

// ok runs a command that must succeed, and returns its output.
func (j *jobs) ok(args ...string) string {
	j.t.Helper()
	code, stdout, stderr := j.run(args...)
	require.Zero(j.t, code, "taskd queue %v: %s", args, stderr)
	return strings.TrimSpace(stdout)
}

// read runs a command that must print JSON.
func (j *jobs) read(v any, args ...string) {
	j.t.Helper()
	out := j.ok(append(args, "--json")...)
	require.NoError(j.t, json.Unmarshal([]byte(out), v), out)
}

// push pushes a shell command and returns the job's id.
func (j *jobs) push(script string, flags ...string) string {
	j.t.Helper()
	payload, err := json.Marshal(map[string]any{"argv": []string{"sh", "-c", script}})
	require.NoError(j.t, err)
	return j.ok(append([]string{"push", "exec", string(payload)}, flags...)...)
}

// fail makes a dead letter of a shell command.
func (j *jobs) fail(script string, flags ...string) {
	j.t.Helper()
	j.push(script, append(flags, "--tries", "1")...)
	j.work("--once")
}

// work runs a worker to its end and returns what it did.
func (j *jobs) work(flags ...string) (did queuecmd.Totals) {
	j.t.Helper()
	j.read(&did, append([]string{"work", "--allow-exec", "sh"}, flags...)...)
	return did
}

func (j *jobs) size() (size struct{ Size, Ready, Delayed, Reserved int }) {
	j.t.Helper()
	j.read(&size, "size")
	return size
}

func (j *jobs) failed(flags ...string) (letters []queue.FailedJob) {
	j.t.Helper()
	j.read(&letters, append([]string{"failed"}, flags...)...)
	return letters
}

func (j *jobs) inspect(id string) (r queue.Record) {
	j.t.Helper()
	j.read(&r, "inspect", id)
	return r
}

// A gate is a job that reports its pid and waits until the gate opens.
type gate struct {
	t         *testing.T
	pids, way string
}

func (j *jobs) gate() gate {
	j.t.Helper()
	g := gate{j.t, filepath.Join(j.dir, "pids"), filepath.Join(j.dir, "way")}
	require.NoError(j.t, syscall.Mkfifo(g.pids, 0o600))
	require.NoError(j.t, syscall.Mkfifo(g.way, 0o600))
	return g
}

func (g gate) script() string { return fmt.Sprintf("echo $$ > %s; cat %s", g.pids, g.way) }

// reached waits until a job stands at the gate and returns its pid.
func (g gate) reached() int {
	g.t.Helper()
	return waittest.PID(g.t, g.pids)
}

func (g gate) open() {
	g.t.Helper()
	require.NoError(g.t, os.WriteFile(g.way, nil, 0o600))
}

func TestQueueVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/db_queue_cli.json")
	require.NoError(t, err)
	var vectors struct {
		Cases []struct {
			Command string
			Start   struct {
				Ready, Delayed, Reserved, Dead int
				Due                            int `json:"due_in_60s"`
			}
			Expect json.RawMessage
			AnyOf  []int `json:"expect_any_of"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.Len(t, vectors.Cases, 11)
	for _, c := range vectors.Cases {
		t.Run(c.Command, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			for range c.Start.Dead {
				j.fail("exit 1")
			}
			for range c.Start.Ready {
				j.push("true")
			}
			for range c.Start.Delayed + c.Start.Due {
				j.push("true", "--delay", "60s")
			}
			switch c.Command {
			case "queue:work":
				worksUntilStopped(t, j)
			case "queue:size":
				for range c.Start.Reserved {
					j.reserve()
				}
				assert.Contains(t, c.AnyOf, j.size().Size)
				assert.Equal(t, c.Start.Ready, j.size().Ready)
				assert.Equal(t, c.Start.Delayed, j.size().Delayed)
				assert.Equal(t, c.Start.Reserved, j.size().Reserved)
			case "queue:clear":
				j.ok("clear", "--yes")
				var want struct{ Ready, Dead int }
				require.NoError(t, json.Unmarshal(c.Expect, &want))
				assert.Equal(t, want.Ready, j.size().Ready)
				assert.Len(t, j.failed(), want.Dead)
			case "queue:failed":
				j.fail("exit 3")
				assert.Contains(t, j.ok("failed"), "*builtin.ExitError: sh: exit status 3")
				assert.Equal(t, "1", j.failed()[0].ID)
			case "queue:retry <id>":
				j.fail("exit 3")
				j.fail("exit 3")
				j.ok("retry", j.failed()[1].ID)
				assert.Len(t, j.failed(), 1)
				assert.Equal(t, 1, j.size().Ready)
			case "queue:retry --all":
				j.fail("exit 3")
				j.fail("exit 3")
				j.ok("retry", "--all", "--yes")
				assert.Empty(t, j.failed())
				assert.Equal(t, 2, j.size().Ready)
			case "queue:restart":
				restarts(t, j)
			default:
				var want struct{ Processed, Left int }
				require.NoError(t, json.Unmarshal(c.Expect, &want))
				flags := strings.Fields(strings.TrimPrefix(c.Command, "queue:work"))
				assert.Equal(t, queuecmd.Totals{Done: want.Processed}, j.work(flags...))
				assert.Equal(t, want.Left, j.size().Size)
			}
		})
	}
}

func worksUntilStopped(t *testing.T, j *jobs) {
	w := j.start("work", "--allow-exec", "sh")
	for range 2 {
		for range 3 {
			j.push("true")
		}
		waittest.Eventually(t, "all jobs are done", func() bool { return j.size().Size == 0 })
	}
	w.Signal(syscall.SIGTERM)
	code, stdout, stderr := w.Wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "6 done, 0 to be tried again, 0 dead")
}

func restarts(t *testing.T, j *jobs) {
	g := j.gate()
	w := j.start("work", "--allow-exec", "sh")
	j.push(g.script())
	g.reached()
	j.ok("restart")
	waittest.Eventually(t, "the worker takes no more", func() bool {
		j.push("true")
		return j.size().Ready >= 3
	})
	g.open()
	code, stdout, stderr := w.Wait()
	assert.Equal(t, cli.ExitRestart, code, stderr)
	assert.Contains(t, stdout, "done, 0 to be tried again, 0 dead")
}

// reserve runs a job until the end of the test.
func (j *jobs) reserve() {
	j.t.Helper()
	g := j.gate()
	j.push(g.script(), "--queue", "held")
	j.start("work", "--queue", "held", "--allow-exec", "sh")
	g.reached()
}

func TestUnknownIDsAreExitCodeOne(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	for _, args := range [][]string{
		{"retry", "7"}, {"failed", "7"}, {"inspect", "7"}, {"cancel", "7"}, {"retry", "seven"},
	} {
		code, stdout, stderr := j.run(args...)
		assert.Equal(t, cli.ExitFailed, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, "not found", args)
	}
}

func TestClearWantsYes(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.push("true")
	j.push("true", "--queue", "mail")
	code, _, stderr := j.run("clear", "--queue", "mail")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, "remove 1 jobs of queue mail")
	assert.Equal(t, 2, j.size().Size)
	assert.Equal(t, "1 jobs removed", j.ok("clear", "--queue", "mail", "--yes"))
	assert.Equal(t, 1, j.size().Size)
}

func TestPushedSettingsAreKept(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	id := j.push("true", "--queue", "mail", "--tries", "7", "--backoff", "2s", "--timeout", "3s",
		"--delay", "1h", "--unique", "k", "--priority", "high")
	got := j.inspect(id).Job
	assert.Equal(t, "mail", got.Queue)
	assert.Equal(t, "delayed", got.State)
	assert.Equal(t, 7, got.MaxAttempts)
	assert.Equal(t, 2, got.Priority)
	assert.Equal(t, "2s", got.Backoff.String())
	assert.Equal(t, "3s", got.Timeout.String())
	assert.Contains(t, j.ok("inspect", id), "state        delayed")

	code, _, stderr := j.run("push", "exec", "{}", "--unique", "k")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "taken by job "+id)
}

func TestAnUrgentJobGoesFirst(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	log := filepath.Join(j.dir, "log")
	for _, level := range []string{"low", "normal", "high", "urgent", "0", "1", "2", "3"} {
		j.push("echo "+level+" >> "+log, "--priority", level)
	}
	j.work("--once", "--concurrency", "1")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "urgent 3 high 2 normal 1 low 0", strings.Join(strings.Fields(string(text)), " "))
}

func TestQueuesOfOtherTablesShareADatabase(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	for i, own := range [][]string{
		nil, {"--table-prefix", "app_"}, {"--table-prefix", "own_", "--jobs-table", "work", "--failed-table", "dead"},
	} {
		tables := func(args ...string) []string { return append(args, own...) }
		assert.Equal(t, "1 migrations applied", j.ok(tables("migrate")...), "%d", i)
		assert.Equal(t, "1", j.push("exit 3", tables("--tries", "1")...))
		var size struct{ Size int }
		j.read(&size, tables("size")...)
		assert.Equal(t, 1, size.Size)
		assert.Contains(t, j.ok(tables("list")...), "exec")
		assert.Contains(t, j.ok(tables("inspect", "1")...), "exec")
		assert.Equal(t, queuecmd.Totals{Dead: 1}, j.work(tables("--once")...))
		require.Len(t, j.failed(own...), 1)
		j.ok(tables("retry", "1")...)
		j.ok(tables("pause")...)
		assert.Equal(t, queuecmd.Totals{}, j.work(tables("--once")...))
		j.ok(tables("resume")...)
		j.ok(tables("restart")...)
		j.ok(tables("cancel", "1")...)
		assert.Equal(t, "0 jobs removed", j.ok(tables("clear", "--yes")...))
		assert.Equal(t, "0 dead letters removed", j.ok(tables("prune", "--older-than", "0")...))
		j.push("true", tables()...)
	}
	assert.Equal(t, 1, j.size().Size)
	j.env = []string{"TASKD_TABLE_PREFIX=app_"}
	j.push("true")
	assert.Equal(t, 2, j.size().Size)
	path := writeConfig(t, "table-prefix = 'none_'\n"+
		"[queue.drivers.database]\njobs_table = 'work'\nfailed_table = 'dead'\n")
	var third struct{ Size int }
	j.read(&third, "size", "--config", path, "--table-prefix", "own_")
	assert.Equal(t, 1, third.Size, "the flag overrides the variable, and that the file")

	code, _, stderr := j.run("size", "--jobs-table", "others")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "A table prefix has one set of tables")
}

func TestAPayloadComesFromStandardInput(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	var stdout strings.Builder
	root := newCommand().root
	root.SetIn(strings.NewReader(`{"n": 9223372036854775807, "html": "<&>"}`))
	root.SetOut(&stdout)
	root.SetArgs([]string{"queue", "--config", "", "--dsn", j.dsn, "push", "count", "-"})
	require.NoError(t, root.Execute())
	payload := j.inspect(strings.TrimSpace(stdout.String())).Job.Envelope.Payload
	assert.JSONEq(t, `{"n": 9223372036854775807, "html": "<&>"}`, string(payload))
	assert.Contains(t, string(payload), "9223372036854775807")
}

func TestTheDefaultDatabaseIsAFileOfTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := launch(t, t.TempDir(), []string{"XDG_DATA_HOME=" + dir}, "queue", "push", "exec").Wait()
	require.Zero(t, code, stderr)
	assert.Equal(t, "1\n", stdout)
	assert.FileExists(t, filepath.Join(dir, "taskd", "queue.db"))

	other := newJobs(t)
	env := []string{"XDG_DATA_HOME=" + dir, "TASKD_DSN=" + other.dsn}
	code, _, stderr = launch(t, t.TempDir(), env, "queue", "push", "exec").Wait()
	require.Zero(t, code, stderr)
	assert.Equal(t, 1, other.size().Size)
}

func TestAMissingDatabaseIsOneSentence(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:secret@127.0.0.1:1/x": "connection refused",
		"mysql://u:secret@127.0.0.1:1/x":    "connection refused",
		"sqlite:/nonexistent/queue.db":      "unable to open", "sqlite:" + t.TempDir(): "unable to open",
	} {
		code, stdout, stderr := taskd(t, t.TempDir(), "queue", "size", "--dsn", dsn)
		assert.Equal(t, cli.ExitFailed, code, dsn)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, want)
		assert.NotContains(t, stderr, "secret")
		assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

// The first of several processes changes a fresh SQLite file to WAL mode and makes the tables.
func TestSeveralCommandsMayMakeTheDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		j := newJobs(t)
		var all sync.WaitGroup
		for range 6 {
			p := j.start("push", "exec")
			all.Go(func() {
				code, _, stderr := p.Wait()
				assert.Zero(t, code, stderr)
			})
		}
		all.Wait()
		assert.Equal(t, 6, j.size().Size)
		assert.Equal(t, "0 migrations applied", j.ok("migrate"))
	}
}
