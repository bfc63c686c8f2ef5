package task_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

func TestConfigDefaults(t *testing.T) {
	p, err := task.New(task.Config{TempDir: shortDir(t)})
	require.NoError(t, err)
	c := p.Config()
	assert.Equal(t, 3, c.WorkerNum)
	assert.Equal(t, 128, c.MaxRunningNum)
	assert.Equal(t, 2<<20, c.MaxPackageSize)
	assert.Equal(t, 5*time.Second, c.PushTimeout)
	assert.Equal(t, "EasySwoole", c.ServerName)
	assert.Equal(t, 1, c.MaxReplacing)
	assert.Equal(t, 10*time.Second, c.StartTimeout)
	assert.Equal(t, 30*time.Second, c.DrainTimeout)
	assert.Equal(t, time.Second, c.FrameTimeout)
	assert.Equal(t, time.Second, c.DrainGrace)
}

func TestTempDirIsTheWorkingDirectoryMadeAbsolute(t *testing.T) {
	dir := shortDir(t)
	t.Chdir(dir)
	p, err := task.New(task.Config{})
	require.NoError(t, err)
	assert.Equal(t, dir, p.Config().TempDir)
	p, err = task.New(task.Config{TempDir: "."})
	require.NoError(t, err)
	assert.Equal(t, dir, p.Config().TempDir)
}

func TestConfigRefuses(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		cfg   task.Config
		field string
		words string
	}{
		"too many workers":        {task.Config{WorkerNum: 513}, "WorkerNum", "from 1 to 512"},
		"negative workers":        {task.Config{WorkerNum: -1}, "WorkerNum", "from 1 to 512"},
		"negative slots":          {task.Config{MaxRunningNum: -1}, "MaxRunningNum", "from 1"},
		"small frames":            {task.Config{MaxPackageSize: 511}, "MaxPackageSize", "from 512"},
		"slash in the name":       {task.Config{ServerName: "a/b"}, "ServerName", `"/"`},
		"NUL in the name":         {task.Config{ServerName: "a\x00b"}, "ServerName", "NUL"},
		"no such directory":       {task.Config{TempDir: filepath.Join(dir, "none")}, "TempDir", "no such file"},
		"a file as directory":     {task.Config{TempDir: file}, "TempDir", "directory"},
		"negative soft limit":     {task.Config{SoftTimeLimit: -1}, "SoftTimeLimit", "negative"},
		"negative limit":          {task.Config{TimeLimit: -1}, "TimeLimit", "negative"},
		"soft above hard":         {task.Config{SoftTimeLimit: 2, TimeLimit: 1}, "SoftTimeLimit", "below TimeLimit"},
		"negative tasks":          {task.Config{MaxTasksPerWorker: -1}, "MaxTasksPerWorker", "from 0"},
		"negative age":            {task.Config{MaxWorkerAge: -1}, "MaxWorkerAge", "negative"},
		"negative memory":         {task.Config{MaxWorkerMemory: -1}, "MaxWorkerMemory", "from 0"},
		"negative replacing":      {task.Config{MaxReplacing: -1}, "MaxReplacing", "from 1"},
		"negative start timeout":  {task.Config{StartTimeout: -1}, "StartTimeout", "negative"},
		"negative frame timeout":  {task.Config{FrameTimeout: -1}, "FrameTimeout", "negative"},
		"negative grace":          {task.Config{DrainGrace: -1}, "DrainGrace", "negative"},
		"a variable with a value": {task.Config{Env: []string{"A=b"}}, "Env", "without values"},
		"a nil task":              {task.Config{Tasks: []task.Runner{nil}}, "Tasks", "nil"},
		"an unregistered task":    {task.Config{Tasks: []task.Runner{&unregistered{}}}, "Tasks", "not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.TempDir == "" {
				c.cfg.TempDir = dir
			}
			_, err := task.New(c.cfg)
			var e *task.ConfigError
			require.True(t, errors.As(err, &e), "got %v", err)
			assert.Equal(t, c.field, e.Field)
			assert.Contains(t, e.Rule, c.words)
			assert.Contains(t, err.Error(), c.field)
		})
	}
}

// In such a directory another user can put a listener in the place of a worker's socket.
func TestTempDirThatAllMayWriteNeedsTheStickyBit_Found15(t *testing.T) {
	dir := shortDir(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := task.New(task.Config{TempDir: dir})
	var e *task.ConfigError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "TempDir", e.Field)
	assert.Equal(t, dir, e.Value)
	assert.Contains(t, e.Rule, "every user may write in it (mode 0777)")
	for _, mode := range []os.FileMode{0o777 | os.ModeSticky, 0o775, 0o700} {
		require.NoError(t, os.Chmod(dir, mode))
		_, err = task.New(task.Config{TempDir: dir})
		assert.NoError(t, err, mode)
	}
}

func TestNegativePushAndDrainTimeoutsMeanNone(t *testing.T) {
	_, err := task.New(task.Config{TempDir: shortDir(t), PushTimeout: -1, DrainTimeout: -1})
	assert.NoError(t, err)
}

// A long TMPDIR gives "invalid argument", or a crash, when the path of the
// socket does not fit.
func TestLongSocketPathIsNamed_Row18(t *testing.T) {
	root := shortDir(t)
	for n := 95; n <= 120; n++ {
		dir := filepath.Join(root, strings.Repeat("d", n-len(root)-1))
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.Len(t, dir, n)
		_, err := task.New(task.Config{TempDir: dir, ServerName: "p"})
		var e *task.ConfigError
		require.True(t, errors.As(err, &e), "%d bytes: got %v", n, err)
		assert.Contains(t, err.Error(), filepath.Join(dir, "p.TaskWorker.2.sock"))
		assert.Contains(t, err.Error(), "100")
	}
}

// shortDir is a directory whose socket paths stay below the limit.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tp")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// unregistered is a task that no registry knows.
type unregistered struct{}

func (*unregistered) Run(context.Context, task.Info) (any, error) { return nil, nil }
