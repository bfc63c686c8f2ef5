package pool_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// All clients see the same least loaded worker and storm it.
func TestManyProcessesDoNotStormOneWorker_Row67(t *testing.T) {
	const workers, clients, slots = 8, 64, 16
	p := startPool(t, task.Config{WorkerNum: workers, MaxRunningNum: slots})
	m := testsync.NewRendezvous(t)
	callers := make([]*host, clients)
	for i := range callers {
		callers[i] = newHost(t, hostConfig{Kind: "caller", Dir: p.dir, Name: "p"})
	}
	for _, h := range callers {
		require.Equal(t, "ready", h.line())
	}
	t.Run("one call each", func(t *testing.T) {
		// On a busy machine the calls come late and all at once: one of ten rounds has to go as it should.
		best := clients
		for round := 0; round < 10 && best > clients/workers*3/2; round++ {
			best = min(best, storm(t, callers, m))
		}
		assert.LessOrEqual(t, best, clients/workers*3/2, "calls of the worker with most of them")
	})
	t.Run("more calls than slots", func(t *testing.T) {
		var held []*testsync.Held
		for range workers*slots - clients/2 { // half of the clients find no slot
			_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
			require.NoError(t, err)
			held = append(held, m.Next())
		}
		for _, h := range callers {
			h.say(m.Addr)
		}
		for range clients / 2 {
			held = append(held, m.Next())
		}
		for range clients / 2 { // each one that leaves lets another in
			held[0].Release("")
			held = append(held[1:], m.Next())
		}
		for _, g := range held {
			g.Release("")
		}
		for _, h := range callers {
			assert.Equal(t, "<nil>", h.line(), "a call that waits is not busy")
		}
	})
	p.still()
}

// storm lets each caller call once, 1 ms after the one before, and returns how many of
// the calls one worker got at most.
func storm(t *testing.T, callers []*host, m *testsync.Rendezvous) (most int) {
	stagger := time.NewTicker(time.Millisecond)
	defer stagger.Stop()
	for _, h := range callers {
		<-stagger.C
		h.say(m.Addr)
	}
	load := map[int]int{}
	var held []*testsync.Held
	for range callers {
		g := m.Next()
		load[g.Worker]++
		most = max(most, load[g.Worker])
		held = append(held, g)
	}
	for _, g := range held {
		g.Release("")
	}
	for _, h := range callers {
		assert.Equal(t, "<nil>", h.line())
	}
	return most
}

// The pipe of tasks is full, and the sender blocks or spins without end.
func TestStoppedPoolHoldsUpNoCaller_Row68(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 2})
	_, err := p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	before := p.Status()
	resume := []func(){stop(t, before[0].PID), stop(t, before[1].PID)}
	const timeout = time.Second
	begun, cpu := time.Now(), cpuTime(t)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			opts := []task.CallOption{task.WithTimeout(timeout)}
			if i%2 == 0 {
				opts = append(opts, task.WithWait(time.Hour))
			}
			_, err := p.Sync(context.Background(), Echo{i}, opts...)
			assert.ErrorIs(t, err, task.ErrSockTimeout)
		})
	}
	wg.Wait()
	assert.Less(t, time.Since(begun), timeout+soon)
	assert.Less(t, cpuTime(t)-cpu, timeout/2, "a caller that spins takes a processor")
	for _, f := range resume {
		f()
	}
	for i := range 10 {
		n, err := task.As[int](p.Sync(t.Context(), Echo{i}))
		require.NoError(t, err)
		assert.Equal(t, i, n)
	}
	p.still()
	after := p.Status()
	assert.Equal(t, []int{before[0].PID, before[1].PID}, []int{after[0].PID, after[1].PID}, "a stop is no crash")
}

// cpuTime is what this process has used, in user mode and in the kernel.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// N processes each take all processors of the host.
func TestWorkersShareTheProcessors_Row69(t *testing.T) {
	parallel(t)
	const workers = 8
	p := startPool(t, task.Config{WorkerNum: workers})
	rs := make([]task.Runner, 32*workers)
	for i := range rs {
		rs[i] = Slow{For: 20 * time.Millisecond}
	}
	for _, o := range p.SyncMany(t.Context(), rs, task.WithTimeout(waitLimit)) {
		require.NoError(t, o.Err)
	}
	share := (runtime.GOMAXPROCS(0) + workers - 1) / workers
	most := max(2, min(runtime.GOMAXPROCS(0), (2*runtime.GOMAXPROCS(0)+workers-1)/workers))
	for _, r := range p.Status() {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.PID))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(threads), most+10, "threads of a worker that ran 32 tasks at once")
	}
	s, err := task.As[Self](p.Sync(t.Context(), Who{}))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, s.Procs, share)
	assert.LessOrEqual(t, s.Procs, most)
	mine, err := os.ReadFile("/proc/self/oom_score_adj")
	require.NoError(t, err)
	ours, err := strconv.Atoi(strings.TrimSpace(string(mine)))
	require.NoError(t, err)
	theirs, err := strconv.Atoi(s.OOMScore)
	require.NoError(t, err)
	assert.Greater(t, theirs, ours, "the kernel takes a worker before the parent")
	for _, e := range s.Env {
		assert.NotContains(t, e, "GOMAXPROCS", "what a worker starts does not inherit its share")
		assert.NotContains(t, e, "GOMEMLIMIT")
	}
}

func TestALongTaskGivesItsWorkerAProcessor(t *testing.T) {
	parallel(t)
	workers := runtime.GOMAXPROCS(0) // the share of each is one
	p := startPool(t, task.Config{WorkerNum: workers, MaxRunningNum: 4})
	procs := func() int {
		s, err := task.As[Self](p.Sync(t.Context(), Who{}, task.WithTimeout(waitLimit)))
		require.NoError(t, err)
		return s.Procs
	}
	require.Equal(t, 1, procs())
	m := testsync.NewRendezvous(t)
	for range workers {
		_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
		require.NoError(t, err)
	}
	var long []*testsync.Held
	for range workers {
		long = append(long, m.Next())
	}
	eventually(t, func() bool { return procs() == 2 }, func() string { return "a worker with a long task has one processor" })
	for _, g := range long {
		g.Release("done")
	}
	eventually(t, func() bool { return procs() == 1 }, func() string { return "the processor was not given back" })
}

// frameOfBody puts the header before a body.
func frameOfBody(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// sendAll sends frames to worker index on one connection and checks the status of each answer.
func sendAll(t *testing.T, p *pool, index int, want task.Status, frames ...[]byte) {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(p.dir, fmt.Sprintf("p.TaskWorker.%d.sock", index)))
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(waitLimit))
	require.True(t, readResponse(t, c).OK, "the greeting")
	for _, f := range frames {
		_, err := c.Write(f)
		require.NoError(t, err)
		assert.Equal(t, want, task.Status(readResponse(t, c).Status))
	}
}

// The error of a huge message blocks the parent, and with it the pool.
func TestGarbageFramesBlockNoCall_Row70(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 4})
	before := p.Status()
	const size = 2<<20 - 4
	for i := range before {
		sendAll(t, p, i, task.ErrIllegalPackage,
			frameOfBody(bytes.Repeat([]byte{0x91}, size)),
			frameOfBody(bytes.Repeat([]byte{0xc1}, size)),
			frameOfBody(make([]byte, size)),
			frameOfBody(bytes.Repeat([]byte{0xdd, 0xff}, size/2)),
		)
	}
	begun := time.Now()
	for i := range 100 {
		n, err := task.As[int](p.Sync(t.Context(), Echo{i}))
		require.NoError(t, err)
		assert.Equal(t, i, n)
	}
	assert.Less(t, time.Since(begun), soon)
	for i, r := range p.Status() {
		assert.Equal(t, before[i].PID, r.PID)
	}
	assert.EqualValues(t, 100, p.still().Accepted)
}

// resident is what of a process is in memory, in bytes.
func resident(t *testing.T, pid int) int { return statm(t, pid, 1) }

// addresses is the size of a process's address space, in bytes.
func addresses(t *testing.T, pid int) int { return statm(t, pid, 0) }

func statm(t *testing.T, pid, field int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[field])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// Five bytes of input allocate gigabytes.
func TestSmallClaimsCostLittle_Row71(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	pid := p.Status()[0].PID
	before := resident(t, pid)
	const size = 1900 << 10
	for range 5 {
		sendAll(t, p, 0, task.ErrIllegalPackage,
			frameOfBody([]byte{0xdd, 4, 0, 0, 0}),
			frameOfBody([]byte{0xc6, 0xff, 0xff, 0xff, 0xff}),
			frameOfBody([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}),
			frameOfBody(bytes.Repeat([]byte{0x91}, size)),
			frameOfBody(bytes.Repeat([]byte{0x81, 0xc0}, size/2)),
			frameOfBody(bytes.Repeat([]byte{0xdd, 0, 0x10, 0, 0}, size/5)),
		)
	}
	const bound = 256 << 20 // what is claimed would be gigabytes; the worker's own tests are exact
	assert.Less(t, resident(t, pid)-before, bound, "what the worker grew by")
	_, err = p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	assert.Equal(t, pid, p.Status()[0].PID)
}
