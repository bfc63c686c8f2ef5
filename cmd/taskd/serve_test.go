package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (s *served) status() []statusRow {
	s.t.Helper()
	var rows []statusRow
	require.NoError(s.t, json.Unmarshal([]byte(s.ok("status", "--json")), &rows))
	return rows
}

// block occupies a slot with a task that ends when release is called.
func (s *served) block() (release func()) {
	s.t.Helper()
	pipe := filepath.Join(s.dir, "pipe")
	require.NoError(s.t, syscall.Mkfifo(pipe, 0o600))
	id := s.ok("async", "exec", `{"argv": ["cat", "`+pipe+`"]}`)
	assert.Positive(s.t, atoi(s.t, id))
	return func() {
		s.t.Helper()
		require.NoError(s.t, os.WriteFile(pipe, nil, 0o600)) // returns when the reader is there
	}
}

func TestServeAnswersAndDrains(t *testing.T) {
	s := servePool(t, "--workers", "2", "--allow-exec", "cat")
	assert.Contains(t, s.line("sockets:"), filepath.Join(s.dir, "EasySwoole.TaskWorker.0.sock"))

	assert.Equal(t, `{"n":9223372036854775807,"u":18446744073709551615}`+"\n", s.ok("call", "echo", `{"n": 9223372036854775807, "u": 18446744073709551615}`))
	assert.Equal(t, "null\n", s.ok("call", "echo"))
	assert.Equal(t, `"slept 1ms"`+"\n", s.ok("call", "sleep", `{"for": "1ms"}`))

	workers := s.status()
	require.Len(t, workers, 2)
	eventually(t, "three tasks are counted", func() bool {
		rows := s.status()
		return rows[0].Success+rows[1].Success == 3 && rows[0].Running+rows[1].Running == 0
	})
	assert.Contains(t, s.ok("status"), "accepting")

	release := s.block()
	s.signal(syscall.SIGTERM)
	s.line("draining, 1 tasks run")
	release()
	code, stdout, stderr := s.wait()
	assert.Zero(t, code, stderr)
	assert.Equal(t, "drained\n", stdout)
	for _, w := range workers {
		assertGone(t, w.PID)
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "*.sock"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// The wish: a first signal drains, a second one ends now.
func TestSecondSignalEndsAtOnce_Row49(t *testing.T) {
	for name, sig := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			s := servePool(t, "--workers", "2")
			id := strings.TrimSpace(s.ok("async", "sleep", `{"for": "60s"}`))
			workers := s.status()
			s.signal(sig)
			s.line("draining, 1 tasks run")
			s.signal(sig)
			begun := time.Now()
			code, _, stderr := s.wait()
			assert.Less(t, time.Since(begun), 20*time.Second, "the drain would last 30 s")
			assert.Equal(t, exitLost, code)
			assert.Contains(t, stderr, "sleep")
			assert.Contains(t, stderr, id)
			for _, w := range workers {
				assertGone(t, w.PID)
			}
		})
	}
}

func TestDrainTimeoutListsWhatWasLost(t *testing.T) {
	s := servePool(t, "--drain-timeout", "200ms", "--allow-exec", "sleep")
	s.ok("async", "exec", `{"argv": ["sleep", "60"]}`)
	s.signal(syscall.SIGTERM)
	code, _, stderr := s.wait()
	// The task's context ends before the time is up, which kills the command: the task fails, but is not lost.
	assert.Zero(t, code, stderr)
}

func TestExecIsRefusedUnlessAllowed(t *testing.T) {
	s := servePool(t, "--allow-exec", "echo,/bin/ca*")
	assert.Equal(t, `{"code":0,"signal":"","stderr":"","stdout":"hi\n","truncated":false}`+"\n", s.ok("call", "exec", `{"argv": ["echo", "hi"]}`))
	assert.Contains(t, s.ok("call", "exec", `{"argv": ["/bin/cat"], "stdin": "in"}`), `"stdout":"in"`)

	code, stdout, stderr := s.run("call", "exec", `{"argv": ["ls"]}`)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "matches no pattern of --allow-exec, which are: echo,/bin/ca*")
}

func TestFailedCallsSayWhatIsKnown(t *testing.T) {
	s := servePool(t, "--workers", "1", "--max-running", "1", "--max-package-size", "64KiB", "--tasks", "echo,sleep,exec", "--allow-exec", "cat")
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"the task fails":            {[]string{"call", "sleep", `{"for": "NaN"}`}, exitFailed, []string{"status -5", "ran", "invalid duration", "The task ran."}},
		"no such task":              {[]string{"call", "digest", `{"path": "x"}`}, exitNotRun, []string{"status -4", "not run", "Check the task's name"}},
		"too large":                 {[]string{"call", "echo", `"` + strings.Repeat("x", 70<<10) + `"`}, exitNotRun, []string{"status -8", "--max-package-size"}},
		"no time":                   {[]string{"call", "sleep", `{"for": "200ms"}`, "--timeout", "20ms"}, exitMayHaveRun, []string{"status -7", "may have run", "before you try again"}},
		"arguments of another type": {[]string{"call", "sleep", `[1]`}, exitNotRun, []string{"status -4", "not run"}},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the slot is free", func() bool { return s.status()[0].Running == 0 })
			code, stdout, stderr := s.run(c.args...)
			assert.Equal(t, c.code, code, stderr)
			assert.Empty(t, stdout)
			for _, want := range c.want {
				assert.Contains(t, stderr, want)
			}
		})
	}
	t.Run("no free slot", func(t *testing.T) {
		eventually(t, "the slot is free", func() bool { return s.status()[0].Running == 0 })
		release := s.block()
		code, _, stderr := s.run("call", "echo")
		assert.Equal(t, exitNotRun, code)
		assert.Contains(t, stderr, "status -2")
		assert.Contains(t, stderr, "--wait 5s")

		waiting := launch(t, s.dir, "call", "echo", "1", "--wait", "30s", "--timeout", "0")
		release()
		code, stdout, stderr := waiting.wait()
		assert.Zero(t, code, stderr)
		assert.Equal(t, "1\n", stdout)
	})
}

func TestCallWithoutAPool(t *testing.T) {
	for _, args := range [][]string{{"call", "echo"}, {"async", "echo"}, {"status"}} {
		code, stdout, stderr := taskd(t, t.TempDir(), args...)
		assert.Equal(t, exitNotRun, code, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "Is it running?")
	}
}

func TestEnvironmentReachesTheWorkersThatMayNotHaveIt(t *testing.T) {
	t.Setenv("TASKD_NAME", "elsewhere")
	t.Setenv("TASKD_ALLOW_EXEC", "env")
	t.Setenv("SECRET", "secret")
	s := servePool(t, "--env", "PATH")
	got := s.ok("call", "exec", `{"argv": ["env"], "env": {"EXTRA": "1"}}`)
	assert.Contains(t, got, "EXTRA=1")
	assert.NotContains(t, got, "secret")
}

func TestSecondPoolOfOneNameIsRefused(t *testing.T) {
	s := servePool(t)
	code, _, stderr := s.run("serve")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "in use by pid")
	assert.Equal(t, "1\n", s.ok("call", "echo", "1"))
}

func TestWatchRepeats(t *testing.T) {
	s := servePool(t, "--workers", "1")
	w := launch(t, s.dir, "status", "--watch", "--every", "10ms")
	for range 3 {
		w.line("accepting")
	}
	w.signal(syscall.SIGINT)
	code, _, stderr := w.wait()
	assert.Zero(t, code, stderr)
}
