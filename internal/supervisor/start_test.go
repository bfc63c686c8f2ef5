package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// envHost makes the test binary a host program of a pool in the folder that it names: it starts
// one, says so, and serves until its stdin ends.
const envHost = "SUPERVISOR_TEST_HOST"

func host() int {
	cfg := Config{
		Settings:     control.Settings{WorkerNum: 2, MaxRunningNum: 8, MaxPackageSize: 1024, DrainTimeout: time.Second},
		ServerName:   "T",
		TempDir:      os.Getenv(envHost),
		MaxReplacing: 1,
		StartTimeout: waitLimit,
	}
	_, err := start(context.Background(), cfg, testEnv())
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return 1
	}
	os.Stdout.WriteString("up\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
}

// startHost runs a host program and returns when its pool is up.
func startHost(t *testing.T, dir string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envHost+"="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { in.Close() })
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	buf := make([]byte, 256)
	n, _ := out.Read(buf)
	require.Equal(t, "up\n", string(buf[:n]))
	return cmd
}

func TestPoolStartsServesAndEnds(t *testing.T) {
	p := startPool(t)
	assert.NotEqual(t, p.pid(0), p.pid(1))
	for i, s := range p.Table().Status() {
		assert.Equal(t, i, s.Index)
		assert.True(t, s.Accepting)
		assert.Equal(t, p.pid(i), s.PID)
	}
	require.NoError(t, p.shutdown())
	assert.True(t, p.Table().Closed())
}

// A second pool of the same name must fail with "in use by pid N" and leave the first intact.
func TestSecondPoolOfANameIsRefused_Row14(t *testing.T) {
	p := startPool(t)
	_, err := start(t.Context(), p.cfg, testEnv())
	require.ErrorIs(t, err, sys.ErrLocked)
	assert.ErrorContains(t, err, fmt.Sprintf("in use by pid %d, this very process: ", os.Getpid()))
	assert.Positive(t, p.pid(0))
	assert.Positive(t, p.pid(1))
}

// After 20 parents killed by SIGKILL the next start leaves only its own files.
func TestNextStartRemovesADeadPoolsSockets_Row16(t *testing.T) {
	dir := t.TempDir()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		cmd := startHost(t, dir)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	require.NoError(t, os.WriteFile(dir+"/T.TaskWorker.x.sock", nil, 0o600))
	p := startPool(t, func(c *Config) { c.TempDir, c.WorkerNum = dir, 1 })
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"T.Pool.lock", "T.Pool.sock", "T.TaskWorker.0.sock", "T.TaskWorker.x.sock"}, names)
	require.NoError(t, p.shutdown())
	require.NoError(t, os.Remove(dir+"/T.TaskWorker.x.sock"))
}

// A worker that panics, exits or gives up at boot: Start's error holds its words and its exit
// status.
func TestStartSaysWhyAWorkerDoesNotBoot_Row31(t *testing.T) {
	for _, c := range []struct {
		name, behaviour string
		want            []string
	}{
		{"panics", "index 1 panic", []string{"worker 1", "exit status 2", "boom at boot", "boot failed"}},
		{"exits", "exit 3", []string{"boot failed: the program ended (exit status 3) before it reached Start", "exits at boot"}},
		{"gives up", "say-no the folder is not there", []string{"exit status 1", "the folder is not there"}},
		{"says nothing", "silent", []string{"boot timeout", "not ready within 300ms"}},
		{"lacks tasks", "forget-tasks", []string{"boot failed: it does not know the tasks a, b; register them before Start"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(envBehaviour, c.behaviour)
			_, err := tryPool(t, testEnv(), func(cfg *Config) {
				if c.behaviour == "silent" {
					cfg.StartTimeout = 300 * time.Millisecond
				}
			})
			require.Error(t, err)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Setenv(envBehaviour, "silent")
	cfg := testConfig(t)
	checkLeaks(t, cfg.TempDir)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := start(ctx, cfg, testEnv())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A memory limit below the idle size is refused at boot, with both numbers; a recycled worker's
// exit is not a crash.
func TestMemoryLimitBelowIdleSizeIsRefused_Row33(t *testing.T) {
	_, err := tryPool(t, testEnv(), func(c *Config) { c.MaxWorkerMemory = 4096 })
	require.ErrorContains(t, err, "limit of 4096 bytes is below the ")
}

func TestRecycledWorkerIsNotACrash_Row33(t *testing.T) {
	p := startPool(t)
	old := p.pid(0)
	p.ask(0, "tell recycle recycled_memory")
	assert.Equal(t, tasktype.ReasonRecycledMemory, p.waitExit(old).Reason)
	assert.NotEqual(t, old, p.pid(0))
	assert.Zero(t, p.Table().Status()[0].Restarts)
}

func TestWorkersGetTheirOwnEnvironmentAndDescriptors(t *testing.T) {
	t.Setenv("WANTED", "1")
	t.Setenv("SECRET", "1")
	p := startPool(t, func(c *Config) { c.Env = []string{"WANTED", "GORACE", control.EnvMarker} })
	assert.Equal(t, "GORACE=atexit_sleep_ms=0|WANTED=1", sorted(p.ask(0, "env")))
	files := p.ask(0, "files")
	assert.Contains(t, files, "0=/dev/null|1=pipe:")
	for _, f := range strings.Split(files, "|") {
		assert.NotContains(t, f, p.cfg.TempDir, "a file of the parent's")
	}
}

func sorted(list string) string {
	all := strings.Split(list, "|")
	slices.Sort(all)
	return strings.Join(all, "|")
}

func TestWorkerHasATitleAndTheArguments(t *testing.T) {
	p := startPool(t)
	line, err := os.ReadFile("/proc/" + p.ask(1, "who") + "/cmdline")
	require.NoError(t, err)
	args := append([]string{"T.TaskWorker.1"}, os.Args[1:]...)
	assert.Equal(t, strings.Join(args, "\x00")+"\x00", string(line))
}

// fork and exec failing for a while: the slot is filled again later.
func TestForkFailureIsRetried_Row27(t *testing.T) {
	e := testEnv()
	fork := e.start
	var broken atomic.Bool
	failures := make(chan struct{}, 100)
	e.start = func(s sys.Spawn) (*sys.Process, error) {
		if broken.Load() {
			failures <- struct{}{}
			return nil, syscall.EAGAIN
		}
		return fork(s)
	}
	p, err := tryPool(t, e, func(c *Config) { c.WorkerNum = 1 })
	require.NoError(t, err)
	broken.Store(true)
	p.ask(0, "exit 1")
	for range 3 {
		<-failures
	}
	failed := p.waitEvent("failed fork", func(ev tasktype.Event) bool { return ev.Kind == tasktype.EventSpawnFailed })
	assert.Equal(t, tasktype.ReasonSpawnFailed, failed.Reason)
	assert.Contains(t, failed.Text, "resource temporarily unavailable")
	broken.Store(false)
	p.waitReady(0, 1)
	assert.Positive(t, p.pid(0))
}

// The program's file is replaced and deleted under a running pool: restarts still run the old code.
func TestRestartRunsTheOldCodeAfterTheFileIsGone_Row40(t *testing.T) {
	dir := t.TempDir()
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	exe := dir + "/program"
	require.NoError(t, os.WriteFile(exe, self, 0o700))
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envHost+"="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer in.Close()
	_, err = out.Read(make([]byte, 3))
	require.NoError(t, err)

	require.NoError(t, os.Remove(exe))
	require.NoError(t, os.WriteFile(exe, []byte("not a program"), 0o700))
	p := &testPool{t: t, cfg: Config{TempDir: dir, ServerName: "T"}}
	old := p.pid(0)
	p.ask(0, "exit 1")
	eventually(t, "a successor answers", func() bool { a := p.ask(0, "who"); return a != "" && a != p.ask(1, "who") })
	assert.NotEqual(t, old, p.pid(0))
}

func TestEndsAreDescribed(t *testing.T) {
	for want, e := range map[string]sharedstate.End{
		"killed (signal 9, killed)":        {Reason: tasktype.ReasonKilled, Signal: 9},
		"out of memory (signal 9, killed)": {Reason: tasktype.ReasonOutOfMemory, Signal: 9},
		"crashed (exit status 2)":          {Reason: tasktype.ReasonCrashed, Code: 2},
		"recycled tasks":                   {Reason: tasktype.ReasonRecycledTasks},
		"unknown":                          {},
	} {
		assert.Equal(t, want, Describe(e))
	}
}
