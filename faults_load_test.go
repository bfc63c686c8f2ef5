package task_test

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
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task"
)

// All clients see the same least loaded worker and storm it.
func TestManyProcessesDoNotStormOneWorker_Row67(t *testing.T) {
	const workers, clients, slots = 8, 64, 16
	p := startPool(t, task.Config{WorkerNum: workers, MaxRunningNum: slots})
	m := newMeeting(t)
	callers := make([]*host, clients)
	for i := range callers {
		callers[i] = newHost(t, hostConfig{Kind: "caller", Dir: p.dir, Name: "p"})
	}
	for _, h := range callers {
		require.Equal(t, "ready", h.line())
	}
	t.Run("one call each", func(t *testing.T) {
		// On a machine with more to do than this, the calls come later than they are
		// meant to, all at once: one of three rounds has to go as it should.
		best := clients
		for round := 0; round < 3 && best > clients/workers*3/2; round++ {
			best = min(best, storm(t, callers, m))
		}
		assert.LessOrEqual(t, best, clients/workers*3/2, "calls of the worker with most of them")
	})
	t.Run("more calls than slots", func(t *testing.T) {
		var held []*guest
		for range workers*slots - clients/2 { // half of the clients find no slot
			_, err := p.Async(t.Context(), Meet{Addr: m.addr})
			require.NoError(t, err)
			held = append(held, m.next())
		}
		for _, h := range callers {
			h.say(m.addr)
		}
		for range clients / 2 {
			held = append(held, m.next())
		}
		for range clients / 2 { // each one that leaves lets another in
			held[0].leave("")
			held = append(held[1:], m.next())
		}
		for _, g := range held {
			g.leave("")
		}
		for _, h := range callers {
			assert.Equal(t, "<nil>", h.line(), "a call that waits is not busy")
		}
	})
	p.still()
}

// storm lets each caller call once, 1 ms after the one before, and returns how many of
// the calls one worker got at most.
func storm(t *testing.T, callers []*host, m *meeting) (most int) {
	stagger := time.NewTicker(atRace(time.Millisecond))
	defer stagger.Stop()
	for _, h := range callers {
		<-stagger.C
		h.say(m.addr)
	}
	load := map[int]int{}
	var guests []*guest
	for range callers {
		g := m.next()
		load[g.Worker]++
		most = max(most, load[g.Worker])
		guests = append(guests, g)
	}
	for _, g := range guests {
		g.leave("")
	}
	for _, h := range callers {
		assert.Equal(t, "<nil>", h.line())
	}
	return most
}

// The pipe of tasks is full, and the sender blocks or spins for ever.
func TestStoppedPoolHoldsNobody_Row68(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 2})
	_, err := p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	before := p.Status()
	resume := []func(){stop(t, before[0].PID), stop(t, before[1].PID)}
	const timeout = 400 * time.Millisecond
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
	assert.Less(t, time.Since(begun), atRace(2*timeout))
	assert.Less(t, cpuTime(t)-cpu, atRace(timeout/4))
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
	for _, c := range []struct{ processors, workers, want int }{
		{1, 1, 2}, {2, 8, 2}, {4, 1, 4}, {8, 3, 6}, {8, 8, 2}, {16, 4, 8}, {64, 3, 43}, {64, 512, 2},
	} {
		assert.Equal(t, c.want, task.Processors(c.processors, c.workers), "%d processors for %d workers", c.processors, c.workers)
	}
	const workers = 8
	p := startPool(t, task.Config{WorkerNum: workers})
	rs := make([]task.Runner, 32*workers)
	for i := range rs {
		rs[i] = Slow{For: 20 * time.Millisecond}
	}
	for _, o := range p.SyncMany(t.Context(), rs, task.WithTimeout(patience)) {
		require.NoError(t, o.Err)
	}
	want := task.Processors(runtime.GOMAXPROCS(0), workers)
	for _, r := range p.Status() {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.PID))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(threads), want+10, "threads of a worker that ran 32 tasks at once")
	}
	s, err := task.As[Self](p.Sync(t.Context(), Who{}))
	require.NoError(t, err)
	assert.Equal(t, want, s.Procs)
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
	c.SetDeadline(time.Now().Add(patience))
	require.True(t, readResponse(t, c).OK, "the greeting")
	for _, f := range frames {
		_, err := c.Write(f)
		require.NoError(t, err)
		assert.Equal(t, want, task.Status(readResponse(t, c).Status))
	}
}

// The error of a huge message blocks the parent, and with it the pool.
func TestGarbageFramesBlockNobody_Row70(t *testing.T) {
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
	assert.Less(t, time.Since(begun), atRace(time.Second))
	for i, r := range p.Status() {
		assert.Equal(t, before[i].PID, r.PID)
	}
	assert.EqualValues(t, 100, p.still().Accepted)
}

// addresses is the size of a process's address space, in bytes; resident what of it is in memory.
func addresses(t *testing.T, pid int) int { return statm(t, pid, 0) }
func resident(t *testing.T, pid int) int  { return statm(t, pid, 1) }

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
	bound := 8 * size
	if raceEnabled {
		bound = 256 << 20 // it keeps a shadow of all memory; what is claimed would be gigabytes
	}
	assert.Less(t, resident(t, pid)-before, bound, "what the worker grew by")
	_, err = p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	assert.Equal(t, pid, p.Status()[0].PID)
}

// A worker is killed for want of memory: the parent hangs, or nobody knows why.
func TestWantOfMemoryIsNamed_Row75(t *testing.T) {
	t.Run("a limit of the process", func(t *testing.T) {
		p := startPool(t, task.Config{WorkerNum: 1})
		pid := p.Status()[0].PID
		if raceEnabled {
			t.Skip("the race detector needs terabytes of addresses")
		}
		limit := uint64(addresses(t, pid) + 800<<20) // room for threads, not for what the task wants
		require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}, nil))
		_, err := p.Sync(t.Context(), Hoard{Bytes: 1 << 30}, task.WithTimeout(patience))
		e := callError(t, err)
		assert.Equal(t, task.MayHaveRun, e.Delivery)
		assert.Contains(t, e.Message, "out of memory")
		exit := p.exited(pid)
		assert.EqualValues(t, "out_of_memory", exit.Reason)
		assert.Contains(t, exit.Stderr, "memory", "the runtime's own words")
		_, err = p.Sync(t.Context(), Echo{1}, task.WithWait(patience), task.WithTimeout(patience))
		assert.NoError(t, err)
	})
	t.Run("a limit of the control group", func(t *testing.T) {
		const limit = 256 << 20
		group := memoryGroup(t, limit)
		dir := shortDir(t)
		h := newHost(t, hostConfig{Dir: dir, Number: 2}, "sh", "-c", "echo $$ > "+group+"/cgroup.procs && exec \"$0\"")
		require.Equal(t, "ready", h.line())
		c, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h"})
		require.NoError(t, err)
		defer c.Close()
		s, err := task.As[Self](c.Sync(t.Context(), Who{}))
		require.NoError(t, err)
		assert.EqualValues(t, limit/10*9/3, s.MaxHeap, "a worker's share of the limit")
		_, err = c.Sync(t.Context(), Hoard{Bytes: 1 << 30}, task.WithTimeout(patience))
		e := callError(t, err)
		assert.Equal(t, task.MayHaveRun, e.Delivery)
		assert.Contains(t, e.Message, "out of memory (signal 9")
		h.say("echo")
		assert.Equal(t, "<nil>", h.line(), "the parent lives, and its pool works")
		eventually(t, func() bool { return strings.Contains(h.err.String(), "reason=out_of_memory") }, h.err.String)
	})
}

// memoryGroup makes a control group with a limit of memory, in bytes.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	parent, file := "/sys/fs/cgroup", "memory.max"
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case parts[1] == "memory":
			parent, file = filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.limit_in_bytes"
		case parts[0] == "0" && file == "memory.max":
			parent = filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	group := filepath.Join(parent, fmt.Sprintf("taskd-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Skipf("this user's rights allow no control group: %v", err)
	}
	t.Cleanup(func() {
		eventually(t, func() bool { return os.Remove(group) == nil }, func() string { return "the control group stays" })
	})
	if err := os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0o600); err != nil {
		t.Skipf("the control group takes no limit of memory: %v", err)
	}
	return group
}
