package pool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/internal/testkit"
)

// A load calls a pool all the time until it is stopped.
type load struct {
	stop  chan struct{}
	wait  sync.WaitGroup
	mu    sync.Mutex
	calls int
	errs  []error
	slow  time.Duration // the slowest call
}

// startLoad has n callers, who send what r returns, one call after the other.
func startLoad(p *pool, n int, r func() task.Runner) *load {
	l := &load{stop: make(chan struct{})}
	for range n {
		l.wait.Go(func() {
			for !closed(l.stop) {
				begin := time.Now()
				_, err := p.Sync(context.Background(), r(), task.WithTimeout(patience))
				l.called(err, time.Since(begin))
			}
		})
	}
	return l
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (l *load) called(err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.slow = max(l.slow, took)
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// end stops the load; its fields may be read then.
func (l *load) end() {
	close(l.stop)
	l.wait.Wait()
}

func echo() task.Runner { return Echo{1} }

// atMost is n, or less under the race detector, where a worker boots slowly.
func atMost(n int) int {
	if raceEnabled {
		return max(n/5, 2)
	}
	return n
}

// replaced waits until each index has been taken over n times for the reason.
func (p *pool) replaced(n int, why task.Reason) {
	p.t.Helper()
	counts := make([]int, p.Config().WorkerNum)
	eventually(p.t, func() bool {
		clear(counts)
		for _, e := range p.Events() {
			if e.Kind == "ready" && e.Reason == why {
				counts[e.Worker.Index]++
			}
		}
		return slices.Min(counts) >= n
	}, func() string { return fmt.Sprintf("takeovers by index: %v\n%s", counts, p.log.String()) })
}

// exits checks that every process that has ended did so by itself, for the reason.
func (p *pool) exits(why task.Reason) {
	p.t.Helper()
	for _, e := range p.Events() {
		if e.Kind == "exited" {
			assert.Equal(p.t, why, e.Reason, "%+v", e)
			assert.Zero(p.t, e.Signal, "%+v", e)
			assert.Zero(p.t, e.ExitCode, "%+v", e)
		}
	}
}

// A worker that exits deletes the socket file that the parent still uses.
func TestPathExistsThroughRecycling_Row11(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1, MaxTasksPerWorker: 1})
	path := p.dir + "/p.TaskWorker.0.sock"
	stop, missing := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !closed(stop) {
			if _, err := os.Stat(path); err != nil {
				n++
			}
			<-tick.C
		}
		missing <- n
	}()
	l := startLoad(p, 1, echo)
	p.replaced(atMost(50), "recycled_tasks")
	l.end()
	close(stop)
	assert.Zero(t, <-missing, "samples without the path")
	assert.Empty(t, l.errs)
}

// After the age limit workers stay invalid and are not replaced.
func TestAgedWorkersAreReplaced_Row29(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 3, MaxWorkerAge: 200 * time.Millisecond})
	p.replaced(atMost(5), "recycled_age")
	p.exits("recycled_age")
	for i := range 30 {
		_, err := p.Sync(t.Context(), Echo{i})
		require.NoError(t, err)
	}
}

// Recycled by the memory limit: the replacement is over the limit at once and loops, and the recycling is reported as a loss.
func TestMemoryLimit_Row33(t *testing.T) {
	t.Run("below the idle size it is refused", func(t *testing.T) {
		p := newPool(t, task.Config{WorkerNum: 1, MaxWorkerMemory: 1 << 20})
		err := p.Start(t.Context())
		require.ErrorContains(t, err, "1048576 bytes is below the ")
		require.ErrorContains(t, err, " bytes that it holds when idle")
	})
	t.Run("a worker that grew is replaced and none crashed", func(t *testing.T) {
		idle := startPool(t, task.Config{WorkerNum: 1, ServerName: "idle"})
		size := sys.Resident(idle.Status()[0].PID)
		p := startPool(t, task.Config{WorkerNum: 1, MaxWorkerMemory: size + 32<<20})
		for range 2 {
			_, err := p.Sync(t.Context(), Hoard{Bytes: int(size)/5 + 64<<20}, task.WithTimeout(patience))
			require.NoError(t, err)
		}
		p.replaced(1, "recycled_memory")
		e := p.event(func(e task.Event) bool { return e.Kind == "exited" })
		assert.EqualValues(t, "recycled_memory", e.Reason)
		p.exits("recycled_memory")
		s := p.still()
		assert.EqualValues(t, 2, s.Success)
		assert.Zero(t, s.Lost)
		assert.Zero(t, p.Status()[0].Restarts)
	})
}

// A stop or a recycling resets connections that wait in the backlog.
func TestRecyclingUnderLoadFailsNoCall_Row58(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 2, MaxTasksPerWorker: 50})
	l := startLoad(p, 8, echo)
	p.replaced(atMost(20), "recycled_tasks")
	require.NoError(t, p.Reload(t.Context()))
	l.end()
	for _, err := range l.errs {
		assert.ErrorIs(t, err, task.ErrProcessBusy)
	}
	s := p.still()
	assert.EqualValues(t, l.calls-len(l.errs), s.Success)
}

// A reload has a gap: old workers stop before new ones accept.
func TestReloadHasNoGap_Row59(t *testing.T) {
	t.Setenv("TEST_ON_WORKER_START", "sleep 300ms")
	p := startPool(t, task.Config{WorkerNum: 2})
	l := startLoad(p, 4, echo)
	reloaded := make(chan error, 1)
	go func() { reloaded <- p.Reload(context.Background()) }()
	for done := false; !done; pause() {
		select {
		case err := <-reloaded:
			require.NoError(t, err)
			done = true
		default:
		}
		able := map[int]bool{}
		for _, s := range p.Status() {
			able[s.Index] = able[s.Index] || s.Accepting
		}
		require.Equal(t, map[int]bool{0: true, 1: true}, able)
	}
	l.end()
	assert.Empty(t, l.errs)
}

// MaxTasksPerWorker: the last call waits for the next worker to boot.
func TestNoCallWaitsForABoot_Row65(t *testing.T) {
	const boot = 400 * time.Millisecond
	t.Setenv("TEST_ON_WORKER_START", "sleep "+boot.String())
	p := startPool(t, task.Config{WorkerNum: 1, MaxTasksPerWorker: 20})
	l := startLoad(p, 1, echo)
	p.replaced(3, "recycled_tasks")
	l.end()
	assert.Empty(t, l.errs)
	assert.Less(t, l.slow, boot, "the slowest of %d calls", l.calls)
}

// All workers recycle at once.
func TestFewRecycleAtOnce_Row66(t *testing.T) {
	var now, most int
	p := startPool(t, task.Config{WorkerNum: 8, MaxTasksPerWorker: 100, MaxReplacing: 2, OnEvent: func(e task.Event) {
		switch {
		case e.Reason != "recycled_tasks":
		case e.Kind == "started":
			now++
			most = max(most, now)
		case e.Kind == "ready":
			now--
		}
	}})
	l := startLoad(p, 8, echo)
	p.replaced(1, "recycled_tasks")
	l.end()
	assert.Empty(t, l.errs)
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 2, most)
}

// Broken new code: a worker is retried for ever in a rolling restart.
func TestReloadToBrokenCodeAborts_Row26(t *testing.T) {
	wanted := filepath.Join(t.TempDir(), "wanted")
	require.NoError(t, os.WriteFile(wanted, nil, 0o600))
	t.Setenv("TEST_ON_WORKER_START", "unless "+wanted)
	p := startPool(t, task.Config{WorkerNum: 2})
	before := p.pids()
	require.NoError(t, os.Remove(wanted))

	l := startLoad(p, 2, echo)
	err := p.Reload(t.Context())
	require.ErrorContains(t, err, "the file is missing")
	assert.Equal(t, before, p.pids(), "the old workers serve")
	l.end()
	assert.Empty(t, l.errs)

	require.NoError(t, os.WriteFile(wanted, nil, 0o600))
	require.NoError(t, p.Reload(t.Context()))
	for _, pid := range p.pids() {
		assert.NotContains(t, before, pid)
	}
}

// pids lists the workers that accept, by index.
func (p *pool) pids() []int {
	var pids []int
	for _, s := range p.Status() {
		if s.Accepting {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// During a phased restart the stopped worker is killed as hung.
func TestReloadLeavesDrainsInPeace_Row38(t *testing.T) {
	n := atMost(32)
	p := startPool(t, task.Config{WorkerNum: n, MaxReplacing: 8})
	m := testkit.NewMeeting(t)
	answers := make(chan error, n)
	var guests []*testkit.Guest
	for range n { // each worker gets one: the others are less loaded
		go func() {
			_, err := p.Sync(context.Background(), Meet{Addr: m.Addr}, task.WithTimeout(patience))
			answers <- err
		}()
		guests = append(guests, m.Next())
	}
	l := startLoad(p, 4, echo)
	require.NoError(t, p.Reload(t.Context()))
	l.end()
	assert.Empty(t, l.errs)
	for _, e := range p.Events() {
		assert.NotEqual(t, "exited", e.Kind, "%+v", e)
	}
	for _, g := range guests {
		assert.True(t, alive(g.PID))
		g.Leave("")
		assert.NoError(t, <-answers)
	}
	eventually(t, func() bool { return len(p.Status()) == n }, func() string { return "old workers stay" })
	p.exits("reloaded")
}

// The binary is replaced: a restart runs the wrong file, or none.
func TestRestartsRunTheOldCode_Row40(t *testing.T) {
	dir := shortDir(t)
	exe := filepath.Join(dir, "program")
	build(t, exe, "old")
	build(t, exe+".new", "new")
	h := runHostCommand(t, exec.Command(exe, dir))
	assert.Equal(t, "old", h.line())

	require.NoError(t, os.Rename(exe+".new", exe))
	h.say("kill")
	assert.Equal(t, "old", h.line(), "after the file was replaced")
	h.say("reload")
	assert.Equal(t, "new", h.line(), "a reload runs the new file")
	require.NoError(t, os.Remove(exe))
	h.say("kill")
	assert.Equal(t, "new", h.line(), "after the file was removed")
}

// build makes the program in testdata/versions, of a version.
func build(t *testing.T, exe, version string) {
	t.Helper()
	out, err := exec.Command("go", "build", "-ldflags", "-s -w -X main.version="+version, "-o", exe, "./testdata/versions").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
