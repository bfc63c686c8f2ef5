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
	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/internal/testsync"
)

// A load calls a pool all the time until it is stopped.
type load struct {
	stop  chan struct{}
	wait  sync.WaitGroup
	mu    sync.Mutex
	calls int
	errs  []error
}

// startLoad has n callers, who send what r returns, one call after the other.
func startLoad(p *pool, n int, r func() task.Runner) *load {
	l := &load{stop: make(chan struct{})}
	for range n {
		l.wait.Go(func() {
			for !closed(l.stop) {
				_, err := p.Sync(context.Background(), r(), task.WithTimeout(waitLimit))
				l.called(err)
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

func (l *load) called(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// count returns how many calls have returned.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
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
	parallel(t)
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
	parallel(t)
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
		size := memstat.Resident(idle.Status()[0].PID)
		p := startPool(t, task.Config{WorkerNum: 1, MaxWorkerMemory: size + 32<<20})
		for range 2 {
			_, err := p.Sync(t.Context(), Hoard{Bytes: int(size)/5 + 64<<20}, task.WithTimeout(waitLimit))
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
	parallel(t)
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
	parallel(t)
	mayBoot := filepath.Join(shortDir(t), "may-boot")
	require.NoError(t, os.WriteFile(mayBoot, nil, 0o600))
	p := startPool(t, task.Config{WorkerNum: 2, ServerName: onStart(t, "until "+mayBoot)})
	l := startLoad(p, 4, echo)
	reloaded := make(chan error, 1)
	require.NoError(t, os.Remove(mayBoot))
	go func() { reloaded <- p.Reload(context.Background()) }()
	p.event(func(e task.Event) bool { return e.Kind == "started" && e.Reason == "reloaded" })
	before := l.count()
	eventually(t, func() bool { return l.count() > before+100 }, func() string { return "calls wait for the successor" })
	require.NoError(t, os.WriteFile(mayBoot, nil, 0o600))
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
	parallel(t)
	mayBoot := filepath.Join(shortDir(t), "may-boot")
	require.NoError(t, os.WriteFile(mayBoot, nil, 0o600))
	p := startPool(t, task.Config{WorkerNum: 1, MaxTasksPerWorker: 20, ServerName: onStart(t, "take "+mayBoot)})
	l := startLoad(p, 1, echo)
	recycled := func(kind task.EventKind) int {
		return p.count(func(e task.Event) bool { return e.Kind == kind && e.Reason == "recycled_tasks" })
	}
	for round := 1; round <= 3; round++ {
		eventually(t, func() bool { return recycled("started") == round }, func() string { return "no successor starts" })
		before := l.count()
		eventually(t, func() bool { return l.count() > before+30 }, func() string { return "calls wait for the successor" })
		require.Equal(t, round-1, recycled("ready"), "the successor boots all the while")
		require.NoError(t, os.WriteFile(mayBoot, nil, 0o600))
		eventually(t, func() bool { return recycled("ready") == round }, func() string { return "the successor is not ready" })
	}
	l.end()
	assert.Empty(t, l.errs)
}

// All workers recycle at once.
func TestFewRecycleAtOnce_Row66(t *testing.T) {
	parallel(t)
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

// Broken new code: a rolling restart retries a worker without end.
func TestReloadToBrokenCodeAborts_Row26(t *testing.T) {
	parallel(t)
	name, breakIt, mendIt := breakable(t)
	p := startPool(t, task.Config{WorkerNum: 2, ServerName: name})
	before := p.pids()
	breakIt()

	l := startLoad(p, 2, echo)
	err := p.Reload(t.Context())
	require.ErrorContains(t, err, "the file is missing")
	assert.Equal(t, before, p.pids(), "the old workers serve")
	l.end()
	assert.Empty(t, l.errs)

	mendIt()
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
	parallel(t)
	n := atMost(32)
	p := startPool(t, task.Config{WorkerNum: n, MaxReplacing: 8})
	m := testsync.NewRendezvous(t)
	answers := make(chan error, n)
	var held []*testsync.Held
	for range n { // each worker gets one: the others are less loaded
		go func() {
			_, err := p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
			answers <- err
		}()
		held = append(held, m.Next())
	}
	l := startLoad(p, 4, echo)
	require.NoError(t, p.Reload(t.Context()))
	l.end()
	assert.Empty(t, l.errs)
	for _, e := range p.Events() {
		assert.NotEqual(t, "exited", e.Kind, "%+v", e)
	}
	for _, g := range held {
		assert.True(t, alive(g.PID))
		g.Release("")
		assert.NoError(t, <-answers)
	}
	eventually(t, func() bool { return len(p.Status()) == n }, func() string { return "old workers stay" })
	p.exits("reloaded")
}

// The binary is replaced: a restart runs the wrong file, or none.
func TestRestartsRunTheOldCode_Row40(t *testing.T) {
	parallel(t)
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
