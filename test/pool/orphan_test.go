package pool_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// ended waits until none of the processes runs any more.
func ended(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, func() bool { return !alive(pid) }, func() string { return fmt.Sprint(pid, " lives") })
	}
}

// alive is false for a zombie too: in a container there may be no process that reaps orphans.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// The parent is killed; its workers live on and hold the sockets. A worker without tasks does not wait for
// the end of the drain's limit.
func TestWorkersOfAKilledParentGo_Row41(t *testing.T) {
	parallel(t)
	t.Run("idle", func(t *testing.T) {
		h := startHost(t, hostConfig{Number: 3, Drain: time.Hour})
		pids := h.workers()
		require.Len(t, pids, 3)
		require.NoError(t, h.cmd.Process.Kill())
		ended(t, pids...)
	})
	t.Run("busy, until the task ends", func(t *testing.T) {
		h := startHost(t, hostConfig{Number: 1, Drain: time.Hour})
		m := testsync.NewRendezvous(t)
		h.say("hold " + m.Addr)
		assert.Equal(t, "<nil>", h.line())
		g := m.Next()
		require.NoError(t, h.cmd.Process.Kill())
		h.cmd.Wait()
		assert.True(t, alive(g.PID))
		g.Release("")
		ended(t, g.PID)
	})
	t.Run("busy, until the limit", func(t *testing.T) {
		h := startHost(t, hostConfig{Number: 1, Drain: 200 * time.Millisecond})
		m := testsync.NewRendezvous(t)
		h.say("stuck " + m.Addr)
		assert.Equal(t, "<nil>", h.line())
		g := m.Next()
		require.NoError(t, h.cmd.Process.Kill())
		ended(t, g.PID)
	})
}

// The master segfaults; its children keep running.
func TestWorkersOfACrashedParentGo_Row42(t *testing.T) {
	parallel(t)
	h := startHost(t, hostConfig{Number: 2, Drain: time.Hour})
	pids := h.workers()
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGSEGV))
	ended(t, pids...)
}

// A death signal fires when a thread ends; children die at random under load.
func TestThreadsOfTheHostMayEnd_Row43(t *testing.T) {
	parallel(t)
	h := startHost(t, hostConfig{Number: 2})
	before := h.workers()
	h.say("threads")
	assert.Equal(t, "done", h.line())
	assert.Equal(t, before, h.workers())
}

// Ctrl-C hits the workers directly, and tasks are lost.
func TestGroupSignalReachesTheParentAlone_Row44(t *testing.T) {
	parallel(t)
	h := startHost(t, hostConfig{Number: 1, Kind: "signals"})
	m := testsync.NewRendezvous(t)
	h.say("hold " + m.Addr)
	assert.Equal(t, "<nil>", h.line())
	g := m.Next()
	require.NoError(t, syscall.Kill(-h.cmd.Process.Pid, syscall.SIGINT))
	assert.Equal(t, "interrupt", h.line(), "the host has the signal")
	assert.True(t, alive(g.PID))
	h.say("shutdown")
	g.Release("")
	assert.Equal(t, "<nil>", h.line(), "no task was lost")
}

// The parent is gone; the worker gets SIGPIPE at its next line of output.
func TestOutputOfADeadParentKillsNoTask_Row47(t *testing.T) {
	parallel(t)
	h := startHost(t, hostConfig{Number: 1, Drain: time.Hour})
	m := testsync.NewRendezvous(t)
	h.say("noisy " + m.Addr)
	assert.Equal(t, "<nil>", h.line())
	g := m.Next()
	require.NoError(t, h.cmd.Process.Kill())
	h.cmd.Wait()
	// The task prints on, and reports to the rendezvous once more when its writes have failed.
	again := m.Next()
	assert.Equal(t, g.PID, again.PID)
	g.Release("")
	again.Release("")
	ended(t, g.PID)
}

// Sockets pile up after crashes.
func TestKilledParentsLeaveNoFiles_Row16(t *testing.T) {
	parallel(t)
	dir := shortDir(t)
	for range 20 {
		h := startHost(t, hostConfig{Dir: dir, Number: 2})
		pids := h.workers()
		require.NoError(t, h.cmd.Process.Kill())
		h.cmd.Wait()
		ended(t, pids...)
	}
	p := startPool(t, task.Config{TempDir: dir, ServerName: "h", WorkerNum: 1})
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	assert.ElementsMatch(t, []string{"h.Pool.lock", "h.Pool.sock", "h.TaskWorker.0.sock"}, names)
	require.NoError(t, p.Shutdown(t.Context()))
}

// A start removes a live server's socket without asking.
func TestSecondPoolOfOneName_Row14(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	second, err := task.New(task.Config{TempDir: p.dir, ServerName: "p", WorkerNum: 1})
	require.NoError(t, err)
	err = second.Start(t.Context())
	require.Error(t, err)
	assert.Contains(t, err.Error(), fmt.Sprintf("in use by pid %d", os.Getpid()))
	_, err = p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err, "the first is intact")
	assert.FileExists(t, filepath.Join(p.dir, "p.TaskWorker.0.sock"))
}

// In Docker the parent is PID 1; children think that it died and exit.
func TestParentIsPID1_Row35(t *testing.T) {
	parallel(t)
	h := startPID1(t)
	h.say("pid")
	assert.Equal(t, "1", h.line(), "the host is PID 1 of its namespace")
	assert.Len(t, h.workers(), 2)
	h.say("echo")
	assert.Equal(t, "<nil>", h.line())
}

// The PID-1 master does not exit at SIGTERM.
func TestPID1EndsAtTERM_Row48(t *testing.T) {
	parallel(t)
	h := startPID1(t)
	h.say("term")
	assert.Equal(t, "terminated", h.line())
	assert.NoError(t, h.cmd.Wait(), "exit code 0")
}

// startPID1 starts a host as PID 1 of a namespace, with a /proc of its own.
func startPID1(t *testing.T) *host {
	t.Helper()
	unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("the kernel or this user's rights allow no PID namespace: %v: %s", err, out)
	}
	h := newHost(t, hostConfig{Number: 2, Kind: "signals"}, unshare...)
	assert.Equal(t, "ready", h.line())
	return h
}
