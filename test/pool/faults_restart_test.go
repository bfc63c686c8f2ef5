package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// count returns how many of the events so far match.
func (p *pool) count(match func(task.Event) bool) int {
	n := 0
	for _, e := range p.Events() {
		if match(e) {
			n++
		}
	}
	return n
}

// breakable returns the name of a pool whose workers boot only while a file is there.
func breakable(t *testing.T) (name string, breakIt, mendIt func()) {
	t.Helper()
	file := filepath.Join(shortDir(t), "works")
	mendIt = func() { require.NoError(t, os.WriteFile(file, nil, 0o600)) }
	breakIt = func() { require.NoError(t, os.Remove(file)) }
	mendIt()
	return onStart(t, "unless "+file), breakIt, mendIt
}

// Bad code at the start is a crash loop that takes a whole processor. Here the
// restarts are few, the index is visibly degraded, and it recovers by itself.
func TestBootLoopIsBounded_Row24(t *testing.T) {
	parallel(t)
	name, breakIt, mendIt := breakable(t)
	p := startPool(t, task.Config{WorkerNum: 2, ServerName: name})
	breakIt()
	pid, begun := p.Status()[0].PID, time.Now()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	killed := p.exited(pid)
	first := p.event(func(e task.Event) bool { return e.Kind == "started" && e.Reason == "killed" })
	assert.Less(t, first.Time.Sub(killed.Time), soon, "the first failure restarts at once")

	degraded := p.event(func(e task.Event) bool { return e.Kind == "degraded" })
	assert.Contains(t, degraded.Text, "the file is missing", "the last words")
	assert.True(t, p.Status()[0].Degraded)
	assert.Greater(t, degraded.Time.Sub(begun), 500*time.Millisecond, "100 ms, 200 ms and 400 ms, with jitter")
	starts := p.count(func(e task.Event) bool { return e.Kind == "started" && e.Time.Before(degraded.Time) }) - 2
	assert.LessOrEqual(t, starts, 4, "starts before it was degraded")
	for range 100 {
		_, err := p.Sync(t.Context(), Echo{1})
		require.NoError(t, err, "the other one serves")
	}
	mendIt()
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting })
	p.event(func(e task.Event) bool { return e.Kind == "recovered" && e.Worker.Index == 0 })
	assert.False(t, p.Status()[0].Degraded)
}

// A boot loop goes on without end, and its cause is not visible.
func TestEachFailedBootSaysWhy_Row25(t *testing.T) {
	parallel(t)
	t.Run("at the start", func(t *testing.T) {
		p := newPool(t, task.Config{WorkerNum: 1, ServerName: onStart(t, "exit")})
		err := p.Start(t.Context())
		assert.ErrorContains(t, err, "my last words")
		assert.ErrorContains(t, err, "exit status 7")
		e := p.event(func(e task.Event) bool { return e.Kind == "exited" })
		assert.EqualValues(t, "boot_failed", e.Reason)
		assert.Equal(t, 7, e.ExitCode)
		assert.Contains(t, e.Stderr, "my last words")
		assert.Equal(t, 1, p.count(func(e task.Event) bool { return e.Kind == "started" }), "it is not tried again")
	})
	t.Run("later", func(t *testing.T) {
		name, breakIt, _ := breakable(t)
		p := startPool(t, task.Config{WorkerNum: 1, ServerName: name})
		breakIt()
		require.NoError(t, syscall.Kill(p.Status()[0].PID, syscall.SIGKILL))
		e := p.event(func(e task.Event) bool { return e.Kind == "exited" && e.Reason == "boot_failed" })
		assert.Contains(t, e.Text, "the file is missing")
		assert.Contains(t, p.log.String(), "the file is missing")
	})
}

// The number of workers shrinks for good when a fork fails once. Here it is the
// parent that has no descriptors left.
func TestFailedForksAreTriedAgain_Row27(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 2})
	pid := p.Status()[0].PID
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	restore := func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }
	defer restore()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	var failed []task.Event
	eventually(t, func() bool {
		failed = nil
		for _, e := range p.Events() {
			if e.Kind == "spawn_failed" {
				failed = append(failed, e)
			}
		}
		return len(failed) >= 3
	}, func() string { return "too few forks failed" })
	assert.Contains(t, failed[0].Text, "too many open files")
	restore()
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != pid })
	_, err := p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}

// Workers are "ready" but never used, or not replaced, and only a reset helps.
func TestChaosLeavesAWholePool_Row28(t *testing.T) {
	parallel(t)
	const workers = 4
	p := startPool(t, task.Config{WorkerNum: workers, DrainTimeout: time.Second})
	var stop atomic.Bool
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for !stop.Load() {
				_, err := p.Sync(context.Background(), Slow{For: rand.N(3 * time.Millisecond)}, task.WithTimeout(300*time.Millisecond))
				if err != nil {
					pause()
				}
			}
		})
	}
	kills := make([]int, workers)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		rows := p.Status()
		w := rows[rand.IntN(len(rows))]
		if w.PID == 0 || !w.Accepting {
			pause()
			continue
		}
		switch n := rand.IntN(8); {
		case n == 0 && kills[w.Index] < 4: // more of them would only lengthen the backoff
			kills[w.Index]++
			_ = syscall.Kill(w.PID, syscall.SIGKILL)
		case n < 3:
			_ = syscall.Kill(w.PID, syscall.SIGTERM)
		default:
			_ = syscall.Kill(w.PID, syscall.SIGSTOP)
			pause()
			_ = syscall.Kill(w.PID, syscall.SIGCONT)
		}
	}
	stop.Store(true)
	load.Wait()
	before := p.status(func(rows []task.WorkerStatus) bool {
		for _, r := range rows {
			if !r.Accepting || r.Running > 0 {
				return false
			}
		}
		return len(rows) == workers
	})
	p.still()
	for i := range 10 {
		rs := make([]task.Runner, 100)
		for j := range rs {
			rs[j] = Echo{i*100 + j}
		}
		for j, o := range p.SyncMany(t.Context(), rs) {
			n, err := task.As[int](o.Result, o.Err)
			require.NoError(t, err)
			assert.Equal(t, i*100+j, n)
		}
	}
	p.still()
	for i, r := range p.Status() {
		assert.Greater(t, r.Success, before[i].Success, "worker %d ran some", i)
	}
}

// The processor is taken away for a while, and every timer is far too late: all
// workers look hung at once.
func TestSuspendedPoolGoesOn_Row30(t *testing.T) {
	parallel(t)
	h := startHost(t, hostConfig{Number: 2, Drain: time.Second})
	m := testsync.NewRendezvous(t)
	h.say("limited " + m.Addr) // a task with a time limit of 2 s
	assert.Equal(t, "<nil>", h.line())
	g := m.Next()
	pids := h.workers()
	other := pids[1-g.Worker]
	require.NoError(t, syscall.Kill(other, syscall.SIGTERM)) // it drains when the stop comes, or right after
	all := append([]int{h.cmd.Process.Pid}, pids...)
	signal := func(sig syscall.Signal) {
		for _, pid := range all {
			if err := syscall.Kill(pid, sig); pid != other { // which may be gone
				require.NoError(t, err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second) // the fault itself
	signal(syscall.SIGCONT)
	h.say("echo")
	assert.Equal(t, "<nil>", h.line())
	g.Release("")
	eventually(t, func() bool { return !alive(other) && h.workers()[1-g.Worker] != 0 }, func() string { return "the drained one is not replaced" })
	assert.Equal(t, g.PID, h.workers()[g.Worker], "the busy one is the same")
	h.say("echo")
	assert.Equal(t, "<nil>", h.line())
	assert.NotContains(t, h.err.String(), "worker pool: exited", "no unplanned end")
	assert.NotContains(t, h.err.String(), "time limit")
}

// The failure of one child ends the master; a shutdown waits for the backoff.
func TestShutdownAmongFailures_Row37(t *testing.T) {
	parallel(t)
	name, breakIt, _ := breakable(t)
	p := startPool(t, task.Config{WorkerNum: 2, ServerName: name})
	first, second := p.Status()[0].PID, p.Status()[1].PID
	breakIt()
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, func() bool {
		return p.count(func(e task.Event) bool { return e.Kind == "exited" && e.Reason == "boot_failed" }) >= 2
	}, func() string { return "no second failure" })
	require.NoError(t, syscall.Kill(second, syscall.SIGKILL))
	begun := time.Now()
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Less(t, time.Since(begun), soon)
	assert.Empty(t, p.children())
}

// A worker that fails everything at once looks idle and draws ever more calls.
func TestWorkerThatFailsEverythingIsSetAside(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	pid := p.Status()[0].PID
	eventually(t, func() bool { // ten fast ones in a row are needed; on a busy machine some are slow
		for range 20 {
			_, err := p.Sync(t.Context(), RunOut{}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
			require.Error(t, err)
		}
		return p.count(func(e task.Event) bool { return e.Kind == "suspect" }) > 0
	}, func() string { return "the worker was not set aside" })
	e := p.event(func(e task.Event) bool { return e.Kind == "suspect" })
	assert.EqualValues(t, "suspect", e.Reason)
	assert.Equal(t, pid, e.Worker.PID)
	assert.Contains(t, e.Text, "too many open files")
	assert.EqualValues(t, "suspect", p.exited(pid).Reason)
	_, err := p.Sync(t.Context(), Echo{1}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
	assert.NoError(t, err)
}

// A task's own failures, however fast, are no reason to set its worker aside.
func TestFailingTasksLeaveTheirWorkerInPlace(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	pid := p.Status()[0].PID
	for i := range 100 {
		_, err := p.Sync(t.Context(), Fail{Text: "no", Panics: i%2 == 0})
		require.Error(t, err)
	}
	assert.Equal(t, pid, p.Status()[0].PID)
	assert.Len(t, p.Events(), 2)
}

// A slow OnEvent holds up nothing; what does not fit is dropped and counted.
func TestSlowOnEventLosesNoCount(t *testing.T) {
	parallel(t)
	release := make(chan struct{})
	p := startPool(t, task.Config{WorkerNum: 1, OnEvent: func(e task.Event) {
		if e.Kind == "soft_limit" {
			<-release
		}
	}})
	const calls = 1200
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			for range calls / 12 {
				_, err := p.Sync(t.Context(), Slow{For: waitLimit}, task.WithTimeLimit(time.Millisecond, 0), task.WithTimeout(waitLimit))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	// The last of them are on their way; a drain of the worker comes after them on the same channel.
	pid := p.Status()[0].PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	p.status(func(rows []task.WorkerStatus) bool { return len(rows) == 1 && rows[0].Accepting && rows[0].PID != pid })
	close(release)
	eventually(t, func() bool { return p.count(func(e task.Event) bool { return e.Kind == "soft_limit" }) >= 1000 }, func() string {
		return fmt.Sprint("the events do not come: ", p.count(func(e task.Event) bool { return e.Kind == "soft_limit" }))
	})
	_, err := p.Sync(t.Context(), Exit{1}, task.WithTimeout(waitLimit)) // makes further events
	require.Error(t, err)
	p.event(func(e task.Event) bool { return e.ExitCode == 1 })
	var seen, dropped int
	for _, e := range p.Events() {
		dropped += int(e.Dropped)
		if e.Kind == "soft_limit" {
			seen++
		}
	}
	assert.Positive(t, dropped)
	assert.GreaterOrEqual(t, seen+dropped, calls)
	assert.LessOrEqual(t, seen+dropped, calls+4, "those of the replacement may be among them")
	assert.Contains(t, p.log.String(), "dropped=")
}

func TestOnEventMayReloadAndShutDown(t *testing.T) {
	parallel(t)
	var p *pool
	up := make(chan struct{})
	ended := make(chan error, 2)
	p = newPool(t, task.Config{WorkerNum: 2, OnEvent: func(e task.Event) {
		switch {
		case e.Kind == "exited" && e.Reason == "crashed":
			<-up
			ended <- p.Reload(context.Background())
		case e.Kind == "reloaded":
			ended <- p.Shutdown(context.Background())
		}
	}})
	require.NoError(t, p.Start(t.Context()))
	close(up)
	_, err := p.Sync(t.Context(), Exit{1})
	require.Error(t, err)
	for range 2 {
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(waitLimit):
			require.FailNow(t, "a call from OnEvent does not return")
		}
	}
}

// What was running when a worker died is in the event and in the log.
func TestEndNamesWhatWasRunning(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	id, err := p.Async(t.Context(), Hold{Addr: m.Addr})
	require.NoError(t, err)
	g := m.Next()
	_, err = p.Sync(t.Context(), Signal{Number: int(syscall.SIGKILL), Print: "my last line"}, task.WithTimeout(waitLimit))
	lost := callError(t, err)
	e := p.exited(g.PID)
	assert.Equal(t, int(syscall.SIGKILL), e.Signal)
	assert.Contains(t, e.Stderr, "my last line")
	names := map[uint64]string{}
	for _, running := range e.Tasks {
		names[running.ID] = running.Name
		assert.Positive(t, running.Age)
		assert.Less(t, running.Age, waitLimit)
	}
	assert.Len(t, names, 2)
	assert.Contains(t, names[id], "Hold")
	assert.Contains(t, fmt.Sprint(names), "Signal")
	assert.Contains(t, lost.Message, "signal 9")
	eventually(t, func() bool {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "worker pool: exited") && strings.Contains(line, fmt.Sprintf("task.id=%d", id)) &&
				strings.Contains(line, "task.age=") && strings.Contains(line, "signal=9") && strings.Contains(line, "my last line") {
				return true
			}
		}
		return false
	}, func() string { return "the log does not say it: " + p.log.String() })
}
