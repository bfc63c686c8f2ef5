package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

// launch starts the command in dir. It has no config file unless env or args name one.
func launch(t *testing.T, dir string, env []string, args ...string) *programtest.Program {
	t.Helper()
	return programtest.Start(t, dir, append([]string{"TASKD_CONFIG="}, env...), args...)
}

// taskd runs the command in dir to its end.
func taskd(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return launch(t, dir, nil, args...).Wait()
}

// A served is a running pool.
type served struct {
	*programtest.Program
	t   *testing.T
	dir string
}

// servePool starts a pool in a new folder and waits until it is ready.
func servePool(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	dir := shortTempDir(t)
	s := &served{launch(t, dir, env, append([]string{"serve"}, args...)...), t, dir}
	s.Line("is ready")
	return s
}

// shortTempDir makes a folder in which the paths of sockets stay under their limit.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "taskd-t")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// run runs a command in the folder of the pool.
func (s *served) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return taskd(s.t, s.dir, args...)
}

// ok runs a command that must succeed, and returns its output.
func (s *served) ok(args ...string) string {
	s.t.Helper()
	code, stdout, stderr := s.run(args...)
	require.Zero(s.t, code, "taskd %v: %s", args, stderr)
	return stdout
}
