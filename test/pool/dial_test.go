package pool_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestDialFromAnotherProcess(t *testing.T) {
	parallel(t)
	dir := shortDir(t)
	startHost(t, hostConfig{Dir: dir, Number: 2})
	c, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h"})
	require.NoError(t, err)
	defer c.Close()
	s, err := task.As[string](c.Sync(t.Context(), &Greet{Name: "you"}))
	require.NoError(t, err)
	assert.Equal(t, "hello you", s)
	s, err = task.As[string](c.Sync(t.Context(), task.Named("test.greet", map[string]any{"Name": "them"})))
	require.NoError(t, err)
	assert.Equal(t, "hello them", s)
	id, err := c.Async(t.Context(), Echo{1})
	require.NoError(t, err)
	assert.Positive(t, id)
	rows := c.Status()
	require.Len(t, rows, 2)
	assert.NotEqual(t, os.Getpid(), rows[0].PID)
	_, err = c.Sync(t.Context(), task.Named("missing", nil))
	assert.ErrorIs(t, err, task.ErrIllegalPackage, "the worker knows its names")
	require.NoError(t, c.Close())
	_, err = c.Sync(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrClosed)
}

func TestDialOfAMissingPoolNamesIt(t *testing.T) {
	parallel(t)
	_, err := task.Dial(t.Context(), task.Config{TempDir: shortDir(t), ServerName: "missing"})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "missing")
}

func TestDialledClientOutlivesThePool(t *testing.T) {
	parallel(t)
	dir := shortDir(t)
	h := startHost(t, hostConfig{Dir: dir, Number: 1})
	c, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	h.in.Close()
	h.cmd.Wait() // its main returned without Shutdown: the workers drain and go
	eventually(t, func() bool {
		_, err := c.Sync(t.Context(), Echo{1})
		return err != nil && callError(t, err).Delivery == task.NotRun
	}, func() string { return "calls still succeed" })
	eventually(t, func() bool { return c.Status() == nil }, func() string { return "the pool still shows" })
	startHost(t, hostConfig{Dir: dir, Number: 1})
	_, err = c.Sync(t.Context(), Echo{1})
	assert.NoError(t, err, "it is back")
}

func TestCallsThroughADialledClientSeeTheShutdown(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	c := dial(t, p)
	m := testsync.NewRendezvous(t)
	answer := make(chan error, 1)
	go func() {
		_, err := c.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
		answer <- err
	}()
	g := m.Next()
	done := make(chan error, 1)
	go func() { done <- p.Shutdown(context.Background()) }()
	eventually(t, func() bool {
		_, err := c.Sync(t.Context(), Echo{1})
		return err != nil && callError(t, err).Delivery == task.NotRun
	}, func() string { return "calls still succeed" })
	g.Release("")
	assert.NoError(t, <-answer)
	assert.NoError(t, <-done)
}

// Another user's process is refused: at the sockets by their mode, and by the
// workers and the control socket by the peer's credentials when it gets in.
func TestAnotherUserIsRefused(t *testing.T) {
	parallel(t)
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := shortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	p := startPool(t, task.Config{WorkerNum: 1, TempDir: dir})
	probe := func() string {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), `TEST_HOST={"Kind":"dial","Name":"p","Dir":"`+dir+`"}`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	assert.Contains(t, probe(), "permission denied")
	files, err := filepath.Glob(dir + "/*.sock")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, f := range files {
		require.NoError(t, os.Chmod(f, 0o666)) // even then
	}
	out := probe()
	assert.NotContains(t, out, "called")
	assert.NotContains(t, strings.ToLower(out), "permission denied")
	_, err = p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}

// A pool that a worker of another pool starts forks nothing.
func TestPoolInsideAWorker(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	s, err := task.As[string](p.Sync(t.Context(), Inside{Dir: p.dir, Name: "p"}, task.WithTimeout(waitLimit)))
	require.NoError(t, err)
	assert.Equal(t, "hello inside", s)
	_, err = p.Sync(t.Context(), Inside{Dir: p.dir, Name: "missing"}, task.WithTimeout(waitLimit))
	assert.Contains(t, callError(t, err).Message, "worker of pool p")
}
