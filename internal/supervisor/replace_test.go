package supervisor

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/tasktype"
)

func TestReloadReplacesEveryWorker(t *testing.T) {
	p := startPool(t, func(c *Config) { c.WorkerNum = 3 })
	old := []int{p.pid(0), p.pid(1), p.pid(2)}
	require.NoError(t, p.Reload(t.Context()))
	for i, pid := range old {
		assert.Equal(t, tasktype.ReasonReloaded, p.waitExit(pid).Reason)
		assert.NotEqual(t, pid, p.pid(i))
	}
	for _, s := range p.Table().Status() {
		assert.Zero(t, s.Restarts)
	}
}

// A reload to a generation that does not boot gives up after two tries, says why, and the old
// workers serve on.
func TestReloadToBrokenCodeAborts_Row26(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" exit 4")
	p := startPool(t)
	old := []int{p.pid(0), p.pid(1)}
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	err := p.Reload(t.Context())
	require.ErrorContains(t, err, "the workers are the old ones")
	assert.ErrorContains(t, err, "exit status 4")
	assert.ErrorContains(t, err, "exits at boot")
	assert.Equal(t, old, []int{p.pid(0), p.pid(1)})
	p.waitExits(2)
	require.NoError(t, os.Remove(flag))
	require.NoError(t, p.Reload(t.Context()))
	assert.NotEqual(t, old[0], p.pid(0))
}

func TestReloadNamesTheTasksThatTheNewProgramLacks(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" forget-tasks")
	p := startPool(t)
	old := p.pid(0)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	require.ErrorContains(t, p.Reload(t.Context()), "it does not know the tasks a, b")
	assert.Equal(t, old, p.pid(0))
}

func TestReloadEndsWithItsContext(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" silent")
	p := startPool(t)
	old := p.pid(0)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan error)
	go func() { first <- p.Reload(ctx) }()
	p.waitEvent("successor", func(e tasktype.Event) bool {
		return e.Kind == tasktype.EventStarted && e.Reason == tasktype.ReasonReloaded
	})
	require.ErrorIs(t, p.Reload(t.Context()), lifecycle.ErrReloading)
	why := errors.New("changed my mind")
	cancel(why)
	require.ErrorIs(t, <-first, why)
	p.waitEvent("end of the successor", func(e tasktype.Event) bool {
		return e.Kind == tasktype.EventExited && e.Reason == tasktype.ReasonReloadAborted
	})
	assert.Equal(t, old, p.pid(0))
	assert.Zero(t, p.Table().Status()[0].Restarts)
}

func TestReloadStartsTheProgramThatItOpened(t *testing.T) {
	e := testEnv()
	e.newExe = func() (*os.File, error) { return os.Open("/bin/true") }
	p, err := tryPool(t, e)
	require.NoError(t, err)
	require.ErrorContains(t, p.Reload(t.Context()), "did not boot")
	// A program that is none of ours left the listener as it was: the old worker can still stop
	// accepting.
	pid := p.pid(0)
	require.NoError(t, p.shutdown())
	assert.Equal(t, tasktype.ReasonShutdown, p.waitExit(pid).Reason)
}

// Under constant calls a reload and recycling refuse or drop no connection.
func TestReplacementDropsNoConnection(t *testing.T) {
	p := startPool(t)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 2 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					assert.NotEmpty(t, p.ask(i, "who"))
				}
			}
		})
	}
	for range 3 {
		require.NoError(t, p.Reload(t.Context()))
		p.ask(0, "tell recycle recycled_tasks")
	}
	close(stop)
	callers.Wait()
}

func TestAtMostMaxReplacingRecycleAtOnce(t *testing.T) {
	t.Setenv(envBehaviour, "sleep 50ms")
	p := startPool(t, func(c *Config) { c.WorkerNum = 4 })
	for i := range 4 {
		p.ask(i, "tell recycle recycled_tasks")
	}
	last := uint64(0)
	for i := range 4 {
		last = max(last, p.waitReady(i, 4).Generation)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	booting := 0
	for _, e := range p.events {
		if e.Generation <= 4 || e.Reason != tasktype.ReasonRecycledTasks {
			continue
		}
		switch e.Kind {
		case tasktype.EventStarted:
			booting++
		case tasktype.EventReady:
			booting--
		}
		assert.LessOrEqual(t, booting, 1)
	}
}

func TestWorkerThatWasToldToTerminateIsReplaced(t *testing.T) {
	p := startPool(t, func(c *Config) { c.DrainTimeout = time.Second })
	pid := p.pid(0)
	p.ask(0, "task long")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	p.waitReady(0, 2)
	assert.NotEqual(t, pid, p.pid(0))
	status := p.Table().Status()
	require.Len(t, status, 3, "the old worker shows while it finishes its task")
	assert.Equal(t, pid, status[1].PID)
	assert.False(t, status[1].Accepting)
	assert.Equal(t, 1, status[1].Running)
}

// A worker that is stopped cannot confirm that it stopped accepting: it is killed, its successor
// serves.
func TestStoppedWorkerIsKilledAtItsReplacement(t *testing.T) {
	p := startPool(t)
	pid := p.pid(0)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.NoError(t, p.Reload(t.Context()))
	assert.Equal(t, tasktype.ReasonUnresponsive, p.waitExit(pid).Reason)
	assert.NotEqual(t, pid, p.pid(0))
}

// The socket file is removed: soon it is back, and calls keep succeeding elsewhere.
func TestRemovedSocketIsBack_Row17(t *testing.T) {
	p := startPool(t)
	pid := p.pid(0)
	path := SocketPath(p.cfg.TempDir, "T", 0)
	began := time.Now()
	require.NoError(t, os.Remove(path))
	assert.Positive(t, p.pid(1))
	p.waitReady(0, 2)
	assert.Less(t, time.Since(began), waitLimit)
	assert.NotEqual(t, pid, p.pid(0))
	assert.Equal(t, tasktype.ReasonSocketLost, p.waitExit(pid).Reason)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
}

// Output of a worker goes on byte for byte; a parent's output that blocks holds up neither the
// workers nor the pool.
func TestOutputGoesOnByteForByte(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := startPool(t, func(c *Config) { c.Stdout = w })
	w.Close()
	p.ask(0, "print one\x01two")
	buf := make([]byte, 100)
	n, err := r.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "one\x01two\n", string(buf[:n]))
}

func TestBlockedOutputHoldsUpNobody(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := startPool(t, func(c *Config) { c.Stdout = w })
	w.Close()
	began := time.Now()
	assert.NotEmpty(t, p.ask(0, "flood 10240"), "the worker wrote 10 MB")
	assert.NotEmpty(t, p.ask(1, "who"))
	assert.Less(t, time.Since(began), waitLimit)
	buf := make([]byte, 1<<20)
	_, err = r.Read(buf)
	require.NoError(t, err)
	dropped := p.waitEvent(
		"dropped output",
		func(e tasktype.Event) bool { return e.Kind == tasktype.EventOutputDropped },
	)
	assert.Contains(t, dropped.Text, "bytes of the workers' output")
	r.Close()
}

func TestOutputIsNotLostToAReaderThatKeepsUp(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := startPool(t, func(c *Config) { c.Stdout = w })
	w.Close()
	total := make(chan int)
	go func() {
		n := 0
		buf := make([]byte, 1<<16)
		for n < 4<<20 {
			m, err := r.Read(buf)
			if err != nil {
				break
			}
			n += m
		}
		total <- n
	}()
	p.ask(0, "flood 4096")
	assert.Equal(t, 4<<20, <-total)
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var last tail
	last.write([]byte(strings.Repeat("line\n", 30)))
	assert.Equal(t, strings.TrimSpace(strings.Repeat("line\n", tailLines)), last.String())
	last.write([]byte(strings.Repeat("x", tailBytes+1)))
	assert.Len(t, last.String(), tailBytes)
}

// The first line of a crash says what it was; thousands of lines of goroutines follow it.
func TestTailKeepsWhatACrashBeganWith(t *testing.T) {
	var last tail
	last.write([]byte("hello\nSIGABRT: abort\n\nfatal error: concurrent map writes\n\n"))
	for range 1000 {
		last.write([]byte("goroutine 1 [running]:\n"))
	}
	assert.True(
		t,
		strings.HasPrefix(last.String(), "SIGABRT: abort\nfatal error: concurrent map writes\n…\ngoroutine 1"),
		last.String(),
	)
	last.write([]byte(strings.Repeat("it was printed and survived\n", maxCrash/20)))
	assert.NotContains(t, last.String(), "fatal")
}
