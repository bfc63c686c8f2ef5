package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
)

func (s *served) status() []task.WorkerStatus {
	s.t.Helper()
	var rows []task.WorkerStatus
	require.NoError(s.t, json.Unmarshal([]byte(s.ok("status", "--json")), &rows))
	return rows
}

// block occupies a slot with a task that ends when release is called.
func (s *served) block() (release func()) {
	s.t.Helper()
	pipe := filepath.Join(s.dir, "pipe")
	require.NoError(s.t, syscall.Mkfifo(pipe, 0o600))
	id := s.ok("async", "exec", `{"argv": ["cat", "`+pipe+`"]}`)
	assert.Positive(s.t, waittest.Int(s.t, id))
	return func() {
		s.t.Helper()
		require.NoError(s.t, os.WriteFile(pipe, nil, 0o600)) // returns when the reader is there
	}
}

func TestServeAnswersAndDrains(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil, "--workers", "2", "--allow-exec", "cat")
	assert.Contains(t, s.Line("sockets:"), filepath.Join(s.dir, "EasySwoole.TaskWorker.0.sock"))

	assert.Equal(t, `{"n":9223372036854775807,"u":18446744073709551615}`+"\n",
		s.ok("call", "echo", `{"n": 9223372036854775807, "u": 18446744073709551615}`))
	assert.Equal(t, "null\n", s.ok("call", "echo"))
	assert.Equal(t, `"slept 1ms"`+"\n", s.ok("call", "sleep", `{"for": "1ms"}`))

	workers := s.status()
	require.Len(t, workers, 2)
	waittest.Eventually(t, "three tasks are counted", func() bool {
		rows := s.status()
		return rows[0].Success+rows[1].Success == 3 && rows[0].Running+rows[1].Running == 0
	})
	assert.Contains(t, s.ok("status"), "accepting")

	release := s.block()
	s.Signal(syscall.SIGTERM)
	s.Line("draining, 1 tasks run")
	release()
	code, stdout, stderr := s.Wait()
	assert.Zero(t, code, stderr)
	assert.Equal(t, "drained\n", stdout)
	for _, w := range workers {
		waittest.Gone(t, w.PID)
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "*.sock"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A first signal drains, and a second one ends the pool at once.
func TestSecondSignalEndsAtOnce_Row49(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servePool(t, nil, "--workers", "2", "--drain-timeout", "2h")
			id := strings.TrimSpace(s.ok("async", "sleep", `{"for": "1h"}`))
			workers := s.status()
			s.Signal(sig)
			s.Line("draining, 1 tasks run")
			s.Signal(sig)
			// Without the second signal the drain would wait for the task longer than the test may
			// run.
			code, _, stderr := s.Wait()
			assert.Equal(t, cli.ExitLost, code)
			assert.Contains(t, stderr, "sleep")
			assert.Contains(t, stderr, id)
			for _, w := range workers {
				waittest.Gone(t, w.PID)
			}
		})
	}
}

func TestTheEndOfADrainKillsACommandAndLosesNoTask(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil, "--drain-timeout", "5s", "--allow-exec", "sleep")
	s.ok("async", "exec", `{"argv": ["sleep", "60"]}`)
	s.Signal(syscall.SIGTERM)
	code, _, stderr := s.Wait()
	// The task's context ends before the time limit and kills the command: the task fails and is
	// not lost.
	assert.Zero(t, code, stderr)
}

func TestExecIsRefusedUnlessAllowed(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil, "--allow-exec", "echo,/bin/ca*")
	assert.Equal(t, `{"code":0,"signal":"","stderr":"","stdout":"hi\n","truncated":false}`+"\n",
		s.ok("call", "exec", `{"argv": ["echo", "hi"]}`))
	assert.Contains(t, s.ok("call", "exec", `{"argv": ["/bin/cat"], "stdin": "in"}`), `"stdout":"in"`)

	code, stdout, stderr := s.run("call", "exec", `{"argv": ["ls"]}`)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "matches no pattern of --allow-exec, which are: echo,/bin/ca*")
}

func TestFailedCallsSayWhetherTheTaskRan(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil, "--workers", "1", "--max-running", "1", "--max-package-size", "64KiB",
		"--tasks", "echo,sleep,exec", "--allow-exec", "cat")
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"the task fails": {
			[]string{"call", "sleep", `{"for": "NaN"}`}, cli.ExitFailed,
			[]string{"status -5", "ran", "invalid duration", "The task ran."},
		},
		"no such task": {
			[]string{"call", "digest", `{"path": "x"}`}, cli.ExitNotRun,
			[]string{"status -4", "not run", "Check the task's name"},
		},
		"too large": {
			[]string{"call", "echo", `"` + strings.Repeat("x", 70<<10) + `"`}, cli.ExitNotRun,
			[]string{"status -8", "--max-package-size"},
		},
		"no time": {
			[]string{"call", "sleep", `{"for": "200ms"}`, "--timeout", "20ms"}, cli.ExitMayHaveRun,
			[]string{"status -7", "may have run", "before you try again"},
		},
		"arguments of another type": {
			[]string{"call", "sleep", `[1]`}, cli.ExitNotRun, []string{"status -4", "not run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Eventually(t, "the slot is free", func() bool { return s.status()[0].Running == 0 })
			code, stdout, stderr := s.run(c.args...)
			assert.Equal(t, c.code, code, stderr)
			assert.Empty(t, stdout)
			for _, want := range c.want {
				assert.Contains(t, stderr, want)
			}
		})
	}
	t.Run("no free slot", func(t *testing.T) {
		waittest.Eventually(t, "the slot is free", func() bool { return s.status()[0].Running == 0 })
		release := s.block()
		code, _, stderr := s.run("call", "echo")
		assert.Equal(t, cli.ExitNotRun, code)
		assert.Contains(t, stderr, "status -2")
		assert.Contains(t, stderr, "--wait 5s")

		waiting := launch(t, s.dir, nil, "call", "echo", "1", "--wait", "30s", "--timeout", "0")
		release()
		code, stdout, stderr := waiting.Wait()
		assert.Zero(t, code, stderr)
		assert.Equal(t, "1\n", stdout)
	})
}

func TestCallWithoutAPool(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"call", "echo"}, {"async", "echo"}, {"status"}} {
		code, stdout, stderr := taskd(t, t.TempDir(), args...)
		assert.Equal(t, cli.ExitNotRun, code, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "Is it running?")
	}
}

func TestSettingsReachWorkersWithoutTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"TASKD_NAME=elsewhere", "TASKD_ALLOW_EXEC=env", "SECRET=secret"}
	s := servePool(t, env, "--env", "PATH")
	code, got, stderr := launch(t, s.dir, env, "call", "exec", `{"argv": ["env"], "env": {"EXTRA": "1"}}`).Wait()
	require.Zero(t, code, stderr)
	assert.Contains(t, got, "EXTRA=1")
	assert.NotContains(t, got, "secret")
}

func TestSecondPoolOfOneNameIsRefused(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil)
	code, _, stderr := s.run("serve")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "in use by pid")
	assert.Equal(t, "1\n", s.ok("call", "echo", "1"))
}

func TestWatchRepeats(t *testing.T) {
	t.Parallel()
	s := servePool(t, nil, "--workers", "1")
	w := launch(t, s.dir, nil, "status", "--watch", "--every", "10ms")
	for range 3 {
		w.Line("accepting")
	}
	w.Signal(syscall.SIGINT)
	code, _, stderr := w.Wait()
	assert.Zero(t, code, stderr)
}
