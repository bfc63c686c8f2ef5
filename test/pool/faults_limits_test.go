package pool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// exited waits for the end of the process pid.
func (p *pool) exited(pid int) task.Event {
	p.t.Helper()
	return p.event(func(e task.Event) bool { return e.Kind == "exited" && e.Worker.PID == pid })
}

// endlessPipe returns the path of a pipe that has nothing to read until the test, or its process, ends.
func endlessPipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	both, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { both.Close() })
	return path
}

// family lists the live processes whose command line has the argument in it.
func family(argument string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Contains(string(b), "\x00"+argument+"\x00") && alive(pid) {
			found = append(found, fmt.Sprint(pid))
		}
	}
	return found
}

// The hard limit does not kill.
func TestHardLimitEndsWhatWillNotStop_Row54(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, TimeLimit: 200 * time.Millisecond, DrainTimeout: 100 * time.Millisecond})
	m := testsync.NewRendezvous(t)
	pipe := endlessPipe(t)
	for name, r := range map[string]task.Runner{
		"a loop that never yields":       Loop{},
		"a blocked system call":          Blocked{},
		"processes that hold the output": Family{Addr: m.Addr, Pipe: pipe, Children: 2},
		"a goroutine that waits":         Stuck{},
	} {
		t.Run(name, func(t *testing.T) {
			pid := p.Status()[0].PID
			begun := time.Now()
			_, err := p.Sync(t.Context(), r, task.WithTimeout(waitLimit), task.WithTimeLimit(0, time.Hour))
			assert.Less(t, time.Since(begun), soon)
			e := callError(t, err)
			assert.Equal(t, task.ErrTask, e.Status)
			assert.Equal(t, task.MayHaveRun, e.Delivery)
			assert.True(t, strings.HasPrefix(e.Message, "time limit"), e.Message)
			assert.Contains(t, e.Message, "200ms", "the limit is named")
			assert.Equal(t, pid, e.PID)
			exit := p.exited(pid)
			assert.EqualValues(t, "hard_limit", exit.Reason)
			require.Len(t, exit.Tasks, 1)
			assert.Equal(t, e.TaskID, exit.Tasks[0].ID)
			assert.GreaterOrEqual(t, exit.Tasks[0].Age, 200*time.Millisecond)
			p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != pid })
			eventually(t, func() bool { return len(family(pipe)) == 0 }, func() string { return fmt.Sprint(family(pipe), " live") })
		})
	}
	sum := p.still()
	assert.EqualValues(t, 4, sum.Lost)
	assert.False(t, sum.Degraded, "a time limit is no crash")
	for _, e := range p.Events() {
		assert.NotEqual(t, "degraded", e.Kind)
	}
}

// A task ignores its context; the slot is lost without a sign. The
// neighbours of such a task have the time of a drain; those that need longer are lost.
func TestNeighboursOfAStuckTask_Row56(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: time.Second})
	m := testsync.NewRendezvous(t)
	type answer struct {
		value string
		err   error
	}
	neighbour := func() (*testsync.Held, <-chan answer) {
		got := make(chan answer, 1)
		go func() {
			s, err := task.As[string](p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit)))
			got <- answer{s, err}
		}()
		return m.Next(), got
	}
	quick, quickAnswer := neighbour()
	slow, slowAnswer := neighbour()
	_, err := p.Sync(t.Context(), Stuck{}, task.WithTimeLimit(50*time.Millisecond, 150*time.Millisecond), task.WithTimeout(waitLimit))
	e := callError(t, err)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	assert.True(t, strings.HasPrefix(e.Message, "time limit"), e.Message)

	soft := p.event(func(e task.Event) bool { return e.Kind == "soft_limit" })
	assert.Contains(t, soft.Text, "Stuck", "the dump shows where the task hangs")
	require.Len(t, soft.Tasks, 1)
	assert.Equal(t, e.TaskID, soft.Tasks[0].ID)
	hard := p.event(func(e task.Event) bool { return e.Kind == "hard_limit" })
	require.Len(t, hard.Tasks, 1)
	assert.Contains(t, hard.Tasks[0].Name, "Stuck")

	quick.Release("in time")
	got := <-quickAnswer
	assert.NoError(t, got.err)
	assert.Equal(t, "in time", got.value)
	r, err := task.As[Self](p.Sync(t.Context(), Who{}, task.WithWait(waitLimit), task.WithTimeout(waitLimit)))
	require.NoError(t, err, "the successor serves")
	assert.NotEqual(t, slow.PID, r.PID)

	lost := callError(t, (<-slowAnswer).err)
	assert.Equal(t, task.ErrSockTimeout, lost.Status)
	assert.Equal(t, task.MayHaveRun, lost.Delivery)
	assert.Contains(t, lost.Message, "hard limit", "the reason")
	assert.Equal(t, slow.PID, lost.PID)
	exit := p.exited(slow.PID)
	assert.EqualValues(t, "hard_limit", exit.Reason)
	var ids []uint64
	for _, running := range exit.Tasks {
		ids = append(ids, running.ID)
	}
	assert.ElementsMatch(t, []uint64{slow.TaskID, e.TaskID}, ids)
	assert.EqualValues(t, 2, p.still().Lost)
}

// A slot is renewed although its task was cancelled; capacity never returns.
func TestACancelledTaskThatGoesOnIsVisible_Row9(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 100 * time.Millisecond})
	m := testsync.NewRendezvous(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := p.Sync(ctx, Stuck{m.Addr}, task.WithCancel(), task.WithTimeLimit(0, 500*time.Millisecond), task.WithTimeout(waitLimit))
		failed <- err
	}()
	g := m.Next()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	assert.Equal(t, 1, p.Status()[0].Running, "it holds its slot, and shows it")
	hard := p.event(func(e task.Event) bool { return e.Kind == "hard_limit" })
	require.Len(t, hard.Tasks, 1)
	assert.Equal(t, g.TaskID, hard.Tasks[0].ID)
	p.exited(g.PID)
	p.status(func(rows []task.WorkerStatus) bool {
		return len(rows) == 1 && rows[0].Accepting && rows[0].Running == 0
	})
	assert.EqualValues(t, 1, p.still().Lost)
}

func TestSoftLimitEndsTheContextAndKeepsADump(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, SoftTimeLimit: 50 * time.Millisecond})
	m := testsync.NewRendezvous(t)
	_, err := p.Sync(t.Context(), Hold{Addr: m.Addr, Ctx: true}, task.WithTimeout(waitLimit))
	e := callError(t, err)
	assert.Equal(t, task.ErrTask, e.Status)
	assert.Equal(t, task.Ran, e.Delivery)
	assert.Contains(t, e.Message, "soft time limit")
	soft := p.event(func(e task.Event) bool { return e.Kind == "soft_limit" })
	assert.Contains(t, soft.Text, "goroutine ")
	assert.Contains(t, soft.Text, "Hold.Run")
	assert.Contains(t, p.log.String(), "Hold.Run", "the dump is in the log")
	sum := p.still()
	assert.EqualValues(t, 1, sum.Fail)
	assert.Zero(t, sum.Restarts, "the worker serves on")
}

// No caller waits for an accepted task; its limit holds all the same.
func TestLimitOfAnAsynchronousTask(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 50 * time.Millisecond})
	m := testsync.NewRendezvous(t)
	id, err := p.Async(t.Context(), Stuck{m.Addr}, task.WithTimeLimit(0, 50*time.Millisecond))
	require.NoError(t, err)
	exit := p.exited(m.Next().PID)
	require.Len(t, exit.Tasks, 1)
	assert.Equal(t, id, exit.Tasks[0].ID)
}

// What a worker started ends with it, also when nothing had the time to stop it.
func TestGrandchildrenGoWithTheirWorker(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	pipe := endlessPipe(t)
	_, err := p.Async(t.Context(), Family{Addr: m.Addr, Pipe: pipe, Children: 10})
	require.NoError(t, err)
	g := m.Next()
	eventually(t, func() bool { return len(family(pipe)) >= 40 }, func() string { return fmt.Sprint(family(pipe)) })
	require.NoError(t, syscall.Kill(g.PID, syscall.SIGKILL))
	p.exited(g.PID)
	// When the end is told, the group has been killed; the system may take a moment over it.
	eventually(t, func() bool { return len(family(pipe)) == 0 }, func() string { return fmt.Sprint(family(pipe), " live") })
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != g.PID })
}
