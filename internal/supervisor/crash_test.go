package supervisor

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/tasktype"
)

func TestCrashedWorkerIsReplacedAtOnce(t *testing.T) {
	p := startPool(t)
	old := p.pid(0)
	row, ok := p.Table().Current(0)
	require.True(t, ok)
	generation := row.Generation()
	p.ask(0, "exit 7")
	e := p.waitExit(old)
	assert.Equal(t, tasktype.ReasonCrashed, e.Reason)
	assert.Equal(t, 7, e.ExitCode)
	end, ok := row.Ended(generation)
	require.True(t, ok)
	assert.Equal(t, "crashed (exit status 7)", Describe(end))
	p.waitReady(0, generation)
	assert.NotEqual(t, old, p.pid(0))
	assert.EqualValues(t, 1, p.Table().Status()[0].Restarts)
}

// One of the workers is killed: the others serve on, the event names pid, signal and the tasks that
// were running.
func TestDeathOfOneWorkerIsReportedAndHarmsNoOther_Row32(t *testing.T) {
	p := startPool(t)
	target, other := p.pid(0), p.pid(1)
	p.ask(0, "task main.Sleep")
	require.NoError(t, syscall.Kill(target, syscall.SIGKILL))
	e := p.waitExit(target)
	assert.Equal(t, tasktype.ReasonKilled, e.Reason)
	assert.Equal(t, 9, e.Signal)
	require.Len(t, e.Tasks, 1)
	assert.Equal(t, "main.Sleep", e.Tasks[0].Name)
	assert.EqualValues(t, target, e.Tasks[0].ID)
	assert.Equal(t, other, p.pid(1))
	p.waitReady(0, e.Generation)
	s := p.Table().Status()[0]
	assert.Equal(t, s.Accepted, s.Success+s.Fail+s.Lost+uint64(s.Running))
	assert.EqualValues(t, 1, s.Lost)
}

// A boot that fails again and again: few starts, a visible degraded state with the last words, and
// recovery when the cause is gone.
func TestBootLoopIsSlowVisibleAndHeals_Row24(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" exit 1")
	p := startPool(t)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	p.ask(0, "exit 1")
	began := time.Now()
	degraded := p.waitEvent("degraded", func(e tasktype.Event) bool { return e.Kind == tasktype.EventDegraded })
	assert.Equal(t, tasktype.ReasonBootFailed, degraded.Reason)
	assert.True(t, p.Table().Status()[0].Degraded)
	starts := p.count(func(e tasktype.Event) bool { return e.Kind == tasktype.EventStarted && e.Worker.Index == 0 })
	most := 3 + int(time.Since(began)/lifecycle.FirstDelay)
	assert.LessOrEqual(t, starts, most, "starts until degraded")
	failed := p.waitEvent("failed boot", func(e tasktype.Event) bool {
		return e.Kind == tasktype.EventExited && e.Reason == tasktype.ReasonBootFailed
	})
	assert.Equal(t, "exits at boot", failed.Stderr)
	require.NoError(t, os.Remove(flag))
	p.waitReady(0, failed.Generation)
	recovered := p.waitEvent("recovered", func(e tasktype.Event) bool { return e.Kind == tasktype.EventRecovered })
	assert.Equal(t, 0, recovered.Worker.Index)
	assert.False(t, p.Table().Status()[0].Degraded)
}

// The reason of a boot loop is in the event, each time.
func TestEachFailedBootSaysWhy_Row25(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" say-no no licence")
	p := startPool(t)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	p.ask(0, "exit 1")
	e := p.waitEvent("failed boot", func(e tasktype.Event) bool {
		return e.Kind == tasktype.EventExited && e.Reason == tasktype.ReasonBootFailed
	})
	assert.Equal(t, "no licence", e.Text)
	assert.Equal(t, 1, e.ExitCode)
}

// Each exit event has exactly one reason from the closed list.
func TestEachExitHasOneReason_Row34(t *testing.T) {
	p := startPool(t, func(c *Config) { c.DrainTimeout = 0 })
	for _, c := range []struct {
		name string
		do   func(pid int)
		want tasktype.Reason
	}{
		{"exit 0 unasked", func(int) { p.ask(0, "exit 0") }, tasktype.ReasonCrashed},
		{"SIGTERM", func(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }, tasktype.ReasonDrained},
		{"SIGKILL", func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }, tasktype.ReasonKilled},
		{"SIGSEGV", func(pid int) { _ = syscall.Kill(pid, syscall.SIGQUIT) }, tasktype.ReasonCrashed},
		{"recycled by age", func(int) { p.ask(0, "tell recycle recycled_age") }, tasktype.ReasonRecycledAge},
		{"recycled by tasks", func(int) { p.ask(0, "tell recycle recycled_tasks") }, tasktype.ReasonRecycledTasks},
		{"suspect", func(int) { p.ask(0, "tell suspect") }, tasktype.ReasonSuspect},
		{"hard limit", func(int) { p.ask(0, "task stuck"); p.ask(0, "tell hard_limit") }, tasktype.ReasonHardLimit},
		{"deaf to a drain", func(int) { p.ask(0, "deaf"); p.ask(0, "tell recycle recycled_age") }, tasktype.ReasonUnresponsive},
		{"tasks outlive the drain", func(int) { p.ask(0, "task long"); p.ask(0, "tell recycle recycled_age") }, tasktype.ReasonDrainTimeout},
	} {
		pid := p.pid(0)
		c.do(pid)
		e := p.waitExit(pid)
		assert.Equal(t, c.want, e.Reason, "%s: got %s", c.name, e.Reason)
		assert.Contains(t, tasktype.Reasons(), e.Reason, c.name)
		p.waitReady(0, e.Generation)
		assert.Equal(
			t,
			1,
			p.count(func(e tasktype.Event) bool { return e.Kind == tasktype.EventExited && e.Worker.PID == pid }),
			c.name,
		)
	}
}

// What a worker printed just before it killed itself is in the parent's record.
func TestLastLinesOfADyingWorkerAreKept_Row74(t *testing.T) {
	p := startPool(t)
	pid := p.pid(0)
	p.ask(0, "die-printing the last words")
	assert.Equal(t, "the last words", p.waitExit(pid).Stderr)
}

// A grandchild that left the group and holds the worker's output holds up nothing.
func TestGrandchildHoldsUpNothing(t *testing.T) {
	p := startPool(t)
	pid := p.pid(0)
	grandchild, err := strconv.Atoi(p.ask(0, "grandchild setsid"))
	require.NoError(t, err)
	defer syscall.Kill(grandchild, syscall.SIGKILL)
	began := time.Now()
	p.ask(0, "exit 1")
	p.waitExit(pid)
	assert.Less(t, time.Since(began), waitLimit)
}

func TestGrandchildInTheGroupIsKilled(t *testing.T) {
	p := startPool(t)
	grandchild, err := strconv.Atoi(p.ask(0, "grandchild"))
	require.NoError(t, err)
	p.ask(0, "exit 1")
	eventually(t, "the grandchild is gone", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(grandchild) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// Host code that ends the threads on which forks happened kills no worker.
func TestEndingThreadsKillNoWorker_Row43(t *testing.T) {
	p := startPool(t, func(c *Config) { c.WorkerNum = 4 })
	var wait sync.WaitGroup
	for range 200 {
		wait.Go(func() { runtime.LockOSThread() }) // the thread ends with the goroutine
	}
	p.ask(0, "exit 1")
	p.waitReady(0, 4)
	wait.Wait()
	p.waitExits(1)
}

// A pid that was reaped is never signalled again: the handle knows that its process is gone.
func TestReapedProcessIsNotSignalled_Row39(t *testing.T) {
	e := testEnv()
	var mu sync.Mutex
	handles := make(map[int]*sys.Process)
	fork := e.start
	e.start = func(s sys.Spawn) (*sys.Process, error) {
		p, err := fork(s)
		if err == nil {
			mu.Lock()
			handles[p.PID()] = p
			mu.Unlock()
		}
		return p, err
	}
	p, err := tryPool(t, e)
	require.NoError(t, err)
	pid := p.pid(0)
	p.ask(0, "exit 1")
	p.waitExit(pid)
	mu.Lock()
	defer mu.Unlock()
	require.ErrorIs(t, handles[pid].Signal(syscall.SIGTERM), os.ErrProcessDone)
}
