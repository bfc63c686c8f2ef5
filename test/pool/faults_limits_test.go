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
	"github.com/taskd-go/task/internal/testkit"
)

// exited waits for the end of the process pid.
func (p *pool) exited(pid int) task.Event {
	p.t.Helper()
	return p.event(func(e task.Event) bool { return e.Kind == "exited" && e.Worker.PID == pid })
}

// family lists the live processes whose command line has mark in it.
func family(mark string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Contains(string(b), "\x00"+mark+"\x00") && alive(pid) {
			found = append(found, fmt.Sprint(pid))
		}
	}
	return found
}

// The hard limit does not kill.
func TestHardLimitEndsWhatWillNotStop_Row54(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1, TimeLimit: 200 * time.Millisecond, DrainTimeout: 100 * time.Millisecond})
	m := testkit.NewMeeting(t)
	const mark = "86421.54"
	for name, r := range map[string]task.Runner{
		"a loop that never yields":       Loop{},
		"a blocked system call":          Blocked{},
		"processes that hold the output": Family{Addr: m.Addr, Mark: mark, Children: 2},
		"a goroutine that waits":         Deaf{},
	} {
		t.Run(name, func(t *testing.T) {
			pid := p.Status()[0].PID
			begun := time.Now()
			_, err := p.Sync(t.Context(), r, task.WithTimeout(patience), task.WithTimeLimit(0, time.Hour))
			assert.Less(t, time.Since(begun), atRace(400*time.Millisecond))
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
			eventually(t, func() bool { return len(family(mark)) == 0 }, func() string { return fmt.Sprint(family(mark), " live") })
		})
	}
	sum := p.still()
	assert.EqualValues(t, 4, sum.Lost)
	assert.False(t, sum.Degraded, "a time limit is no crash")
	for _, e := range p.Events() {
		assert.NotEqual(t, "degraded", e.Kind)
	}
}

// A task ignores its context; the slot is gone for ever, and nobody knows. The
// neighbours of such a task have the time of a drain; those that need longer are lost.
func TestNeighboursOfAStuckTask_Row56(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: time.Second})
	m := testkit.NewMeeting(t)
	type answer struct {
		value string
		err   error
	}
	neighbour := func() (*testkit.Guest, <-chan answer) {
		got := make(chan answer, 1)
		go func() {
			s, err := task.As[string](p.Sync(context.Background(), Meet{Addr: m.Addr}, task.WithTimeout(patience)))
			got <- answer{s, err}
		}()
		return m.Next(), got
	}
	quick, quickAnswer := neighbour()
	slow, slowAnswer := neighbour()
	_, err := p.Sync(t.Context(), Deaf{}, task.WithTimeLimit(50*time.Millisecond, 150*time.Millisecond), task.WithTimeout(patience))
	e := callError(t, err)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	assert.True(t, strings.HasPrefix(e.Message, "time limit"), e.Message)

	soft := p.event(func(e task.Event) bool { return e.Kind == "soft_limit" })
	assert.Contains(t, soft.Text, "Deaf", "the dump shows where the task hangs")
	require.Len(t, soft.Tasks, 1)
	assert.Equal(t, e.TaskID, soft.Tasks[0].ID)
	hard := p.event(func(e task.Event) bool { return e.Kind == "hard_limit" })
	require.Len(t, hard.Tasks, 1)
	assert.Contains(t, hard.Tasks[0].Name, "Deaf")

	quick.Leave("in time")
	got := <-quickAnswer
	assert.NoError(t, got.err)
	assert.Equal(t, "in time", got.value)
	r, err := task.As[Self](p.Sync(t.Context(), Who{}, task.WithWait(patience), task.WithTimeout(patience)))
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
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 100 * time.Millisecond})
	m := testkit.NewMeeting(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := p.Sync(ctx, Deaf{m.Addr}, task.WithCancel(), task.WithTimeLimit(0, 500*time.Millisecond), task.WithTimeout(patience))
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
	p := startPool(t, task.Config{WorkerNum: 1, SoftTimeLimit: 50 * time.Millisecond})
	m := testkit.NewMeeting(t)
	_, err := p.Sync(t.Context(), Meet{Addr: m.Addr, Ctx: true}, task.WithTimeout(patience))
	e := callError(t, err)
	assert.Equal(t, task.ErrTask, e.Status)
	assert.Equal(t, task.Ran, e.Delivery)
	assert.Contains(t, e.Message, "soft time limit")
	soft := p.event(func(e task.Event) bool { return e.Kind == "soft_limit" })
	assert.Contains(t, soft.Text, "goroutine ")
	assert.Contains(t, soft.Text, "Meet.Run")
	assert.Contains(t, p.log.String(), "Meet.Run", "the dump is in the log")
	sum := p.still()
	assert.EqualValues(t, 1, sum.Fail)
	assert.Zero(t, sum.Restarts, "the worker serves on")
}

// An accepted task has nobody who waits for it; its limit bites all the same.
func TestLimitOfAnAsynchronousTask(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 50 * time.Millisecond})
	m := testkit.NewMeeting(t)
	id, err := p.Async(t.Context(), Deaf{m.Addr}, task.WithTimeLimit(0, 50*time.Millisecond))
	require.NoError(t, err)
	exit := p.exited(m.Next().PID)
	require.Len(t, exit.Tasks, 1)
	assert.Equal(t, id, exit.Tasks[0].ID)
}

// Whatever a worker started goes with it, also when nobody had the time to stop it.
func TestGrandchildrenGoWithTheirWorker(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testkit.NewMeeting(t)
	const mark = "86421.10"
	_, err := p.Async(t.Context(), Family{Addr: m.Addr, Mark: mark, Children: 10})
	require.NoError(t, err)
	g := m.Next()
	eventually(t, func() bool { return len(family(mark)) >= 40 }, func() string { return fmt.Sprint(family(mark)) })
	require.NoError(t, syscall.Kill(g.PID, syscall.SIGKILL))
	p.exited(g.PID)
	// When the end is told, the group has been killed; the system may take a moment over it.
	eventually(t, func() bool { return len(family(mark)) == 0 }, func() string { return fmt.Sprint(family(mark), " live") })
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != g.PID })
}
