package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/queuecmd"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
	"github.com/taskd-go/task/internal/programtest"
	"github.com/taskd-go/task/job"
)

// modes are the flags that say where a worker runs its jobs.
var modes = map[string][]string{"in process": nil, "in a pool": {"--pool", "--concurrency", "2"}}

// kill -9 worker: a job with attempts left must be retried with the attempt counted, not
// dead-lettered at attempt 1.
func TestAKilledWorkersCommandIsGoneAndItsJobRunsAgain_Row12(t *testing.T) {
	t.Parallel()
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			g := j.gate()
			id := j.push(g.script())
			flags := append([]string{"work", "--allow-exec", "sh", "--lease", "3s", "--max", "1"}, flags...)
			first := j.start(flags...)
			pid := g.reached()
			first.Signal(syscall.SIGKILL)
			waittest.Gone(t, pid)

			second := j.start(flags...)
			assert.NotEqual(t, pid, g.reached())
			got := j.inspect(id).Job
			assert.Equal(t, 2, got.Attempts)
			assert.Equal(t, 1, got.Crashes)
			g.open()
			code, stdout, stderr := second.Wait()
			assert.Zero(t, code, stderr)
			assert.Contains(t, stdout, "1 done")
			assert.Zero(t, j.size().Size)
			assert.Empty(t, j.failed())
		})
	}
}

// SIGTERM mid-job: attempt unchanged, errors empty, available at once.
func TestTheEndOfAWorkerGivesItsJobBack_Row24(t *testing.T) {
	t.Parallel()
	for name, flags := range modes {
		for drain, signals := range map[string][]syscall.Signal{
			"100ms": {syscall.SIGTERM}, "1h": {syscall.SIGTERM, syscall.SIGINT},
		} {
			t.Run(name+", signals: "+strconv.Itoa(len(signals)), func(t *testing.T) {
				t.Parallel()
				j := newJobs(t)
				g := j.gate()
				id := j.push(g.script())
				w := j.start(append([]string{"work", "--allow-exec", "sh", "--drain-timeout", drain}, flags...)...)
				pid := g.reached()
				for _, sig := range signals {
					w.Signal(sig)
				}
				code, stdout, stderr := w.Wait()
				assert.Zero(t, code, stderr)
				assert.Contains(t, stdout, "0 done, 0 to be tried again, 0 dead, 1 given back")
				waittest.Gone(t, pid)
				got := j.inspect(id).Job
				require.NotNil(t, got)
				assert.Equal(t, "ready", got.State)
				assert.Zero(t, got.Attempts)
				assert.Empty(t, got.Failures)
			})
		}
	}
}

func TestADrainLetsTheJobFinish(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	g := j.gate()
	j.push(g.script())
	w := j.start("work", "--allow-exec", "sh")
	g.reached()
	w.Signal(syscall.SIGINT)
	g.open()
	code, stdout, stderr := w.Wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "1 done")
}

func TestAStoppedWorkersCommandIsGoneBeforeItsLeaseLapses(t *testing.T) {
	t.Parallel()
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			g := j.gate()
			id := j.push(g.script())
			w := j.start(append([]string{"work", "--allow-exec", "sh", "--lease", "12s"}, flags...)...)
			pid := g.reached()
			w.Signal(syscall.SIGSTOP)
			waittest.Gone(t, pid)
			assert.Less(t, time.Now(), j.inspect(id).Job.LeaseUntil)
		})
	}
}

func TestACancelledJobsCommandIsGone(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	g := j.gate()
	id := j.push(g.script())
	w := j.start("work", "--allow-exec", "sh", "--max", "1")
	pid := g.reached()
	j.ok("cancel", id)
	waittest.Gone(t, pid)
	code, stdout, stderr := w.Wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "0 done, 0 to be tried again, 0 dead, 0 given back, 1 cancelled, 0 lost")
	assert.Zero(t, j.size().Size)
	assert.Empty(t, j.failed())
}

func TestAPauseHoldsForWorkersOfOtherProcesses(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.ok("pause", "--queue", "mail")
	j.push("true", "--queue", "mail")
	w := j.start("work", "--queue", "mail,default", "--allow-exec", "sh")
	j.push("true")
	waittest.Eventually(t, "what is not paused is done", func() bool { return j.size().Size == 1 })
	assert.Zero(t, j.work("--once", "--queue", "mail").Done)
	assert.Equal(t, 1, j.size().Ready)
	j.ok("resume", "--queue", "mail")
	waittest.Eventually(t, "the paused queue goes on", func() bool { return j.size().Size == 0 })
	w.Signal(syscall.SIGTERM)
	code, _, stderr := w.Wait()
	assert.Zero(t, code, stderr)
}

func TestARestartReachesEveryWorker(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	workers := []*programtest.Program{j.start("work"), j.start("work", "--queue", "mail")}
	for _, w := range workers {
		w.Line("takes jobs from")
	}
	// A worker that has taken a job has read what was asked for before.
	for _, name := range []string{"default", "mail"} {
		j.ok("push", "ftp", "{}", "--queue", name)
	}
	waittest.Eventually(t, "both have begun", func() bool { return j.size().Size == 0 })
	j.ok("restart")
	for _, w := range workers {
		code, _, stderr := w.Wait()
		assert.Equal(t, cli.ExitRestart, code, stderr)
	}
	assert.Equal(t, queuecmd.Totals{}, j.work("--once"), "a worker that starts later is not meant")
}

func TestStrictQueuesGoInOrder(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	log := filepath.Join(j.dir, "log")
	for _, name := range []string{"b", "a", "b", "a"} {
		j.push("printf "+name+" >> "+log, "--queue", name)
	}
	j.work("--once", "--queue", "a,b", "--concurrency", "1")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "aabb", string(text))
}

func TestWeightedQueuesAreAllWorked(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.push("true", "--queue", "a")
	j.push("true", "--queue", "b")
	assert.Equal(t, 2, j.work("--once", "--queue", "a:3,b:1").Done)
	code, _, stderr := j.run("work", "--once", "--queue", "a:0")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, "a weight must be")
}

func TestTheTimeLimitOfAJobOverridesTheWorkers(t *testing.T) {
	t.Parallel()
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			j.push("sleep 300", "--tries", "1")
			j.push("sleep 0.2", "--tries", "1", "--timeout", "1m")
			did := j.work(append([]string{"--once", "--allow-exec", "sh", "--timeout", "100ms"}, flags...)...)
			assert.Equal(t, queuecmd.Totals{Done: 1, Dead: 1}, did)
			letters := j.failed()
			require.Len(t, letters, 1)
			assert.Equal(t, job.ReasonTimeout, letters[0].Reason)
			assert.Contains(t, letters[0].Error, "100ms")
			assert.Contains(t, letters[0].Payload, "sleep 300")
		})
	}
}

func TestExecJobs(t *testing.T) {
	t.Parallel()
	done, again, dead := queuecmd.Totals{Done: 1}, queuecmd.Totals{Again: 1}, queuecmd.Totals{Dead: 1}
	for name, c := range map[string]struct {
		payload string
		want    queuecmd.Totals
		words   string // of the dead letter
	}{
		"exit code 0":       {`{"argv": ["sh", "-c", "true"]}`, done, ""},
		"another exit code": {`{"argv": ["sh", "-c", "echo why >&2; exit 3"]}`, again, "sh: exit status 3: why"},
		"a signal":          {`{"argv": ["sh", "-c", "kill -TERM $$"]}`, again, "sh: signal: terminated"},
		"not allowed":       {`{"argv": ["ls"]}`, dead, "--allow-exec"},
		"a relative path":   {`{"argv": ["./sh"]}`, dead, "absolute path"},
		"no command":        {`{}`, dead, "argv"},
		"not there":         {`{"argv": ["missing"]}`, again, "not found"},
		"no such folder":    {`{"argv": ["sh", "-c", ""], "dir": "/nonexistent"}`, again, "/nonexistent"},
		"input and variable": {
			`{"argv": ["sh", "-c", "test $(cat)$X = ab"], "stdin": "a", "env": {"X": "b"}}`, done, "",
		},
		"its own time limit": {`{"argv": ["sh", "-c", "sleep 60"]}`, again, "timed out after 100ms"},
		"it kills its group": {`{"argv": ["sh", "-c", "kill -KILL 0"]}`, again, "sh was killed with its guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			flags := []string{"push", "exec", c.payload, "--delay", "0s"}
			if strings.Contains(c.words, "100ms") {
				flags = append(flags, "--timeout", "100ms")
			}
			id := j.ok(flags...)
			assert.Equal(t, c.want, j.work("--once", "--allow-exec", "missing"))
			switch {
			case c.want.Dead > 0:
				assert.Contains(t, j.failed()[0].Error, c.words)
			case c.want.Again > 0:
				assert.Contains(t, j.inspect(id).Job.Failures[0].Error, c.words)
			}
		})
	}
}

func TestACommandThatPrintsInvalidUTF8Dies(t *testing.T) {
	t.Parallel()
	onEveryDatabase(t, func(j *jobs) {
		j.push(`printf 'a\0b\377c' >&2; exit 3`, "--tries", "1")
		assert.Equal(j.t, queuecmd.Totals{Dead: 1}, j.work("--once"))
		require.Len(j.t, j.failed(), 1)
		assert.Equal(j.t, "sh: exit status 3: a\uFFFDbc", j.failed()[0].Error)
		assert.Zero(j.t, j.size().Size)
	})
}

func TestProcessesThatACommandLeavesAreGone(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	pids := filepath.Join(j.dir, "pids")
	j.push("sleep 60 & echo $! > " + pids)
	assert.Equal(t, 1, j.work("--once").Done)
	waittest.Gone(t, waittest.PID(t, pids))
}

func TestACommandDoesNotSeeTheDatabase(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.env = []string{"TASKD_DSN=" + j.dsn}
	j.push(`test -z "$TASKD_DSN"`)
	assert.Equal(t, 1, j.work("--once").Done)
}
