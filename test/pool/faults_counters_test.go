package pool_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// A count of connections leaks on every close that the server starts, and the
// shutdown waits its whole grace for them.
func TestDrainReturnsAtOnce_Row7(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2, DrainTimeout: time.Hour})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 1000 {
		switch i % 4 {
		case 0: // by the worker, which answers and closes
			if i%40 == 0 {
				assert.Equal(t, task.ErrProtocol, rawStatus(t, p, []byte{0, 0, 0, 0}))
			}
		case 1: // by the client's context
			_, _ = p.Sync(ended, Echo{i})
		case 2: // by the time-out
			_, _ = p.Sync(t.Context(), Slow{For: 2 * time.Millisecond}, task.WithTimeout(time.Millisecond))
		default:
			_, err := p.Sync(t.Context(), Echo{i})
			require.NoError(t, err)
		}
	}
	p.still()
	begun := time.Now()
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Less(t, time.Since(begun), soon)
}

// "Worker stopped, time-out or memory leak", with no way to tell which.
func TestEachEndHasOneReasonOfTheList_Row34(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 100 * time.Millisecond})
	kill := func(sig syscall.Signal) func() {
		return func() { require.NoError(t, syscall.Kill(p.Status()[0].PID, sig)) }
	}
	call := func(r task.Runner, opts ...task.CallOption) func() {
		return func() { _, _ = p.Sync(t.Context(), r, append(opts, task.WithTimeout(waitLimit))...) }
	}
	for _, c := range []struct {
		name   string
		do     func()
		reason task.Reason
	}{
		{"it exits with 0 unasked", call(Exit{0}), "crashed"},
		{"it exits with 7", call(Exit{7}), "crashed"},
		{"SIGKILL", kill(syscall.SIGKILL), "killed"},
		{"SIGSEGV", call(Signal{Number: int(syscall.SIGSEGV)}), "crashed"},
		{"SIGTERM", kill(syscall.SIGTERM), "drained"},
		{"SIGINT", kill(syscall.SIGINT), "drained"},
		{"a task outlives the drain", func() {
			m := testsync.NewRendezvous(t)
			_, err := p.Async(t.Context(), Stuck{m.Addr})
			require.NoError(t, err)
			m.Next()
			kill(syscall.SIGTERM)()
		}, "drain_timeout"},
		{"a time limit", call(Stuck{}, task.WithTimeLimit(0, 10*time.Millisecond)), "hard_limit"},
		{"its socket is removed", func() { require.NoError(t, os.Remove(p.dir+"/p.TaskWorker.0.sock")) }, "socket_lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid := p.Status()[0].PID
			c.do()
			assert.Equal(t, c.reason, p.exited(pid).Reason)
			p.status(func(rows []task.WorkerStatus) bool { return len(rows) == 1 && rows[0].Accepting && rows[0].PID != pid })
		})
	}
	last := p.Status()[0].PID
	require.NoError(t, p.Shutdown(t.Context()))
	assert.EqualValues(t, "shutdown", p.exited(last).Reason)

	doc, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	ends := map[int]int{}
	for _, e := range p.Events() {
		assert.Contains(t, string(doc), "| `"+string(e.Reason)+"` |", "the list of reasons in docs/operations.md")
		if e.Kind == "exited" {
			ends[e.Worker.PID]++
		}
	}
	for pid, n := range ends {
		assert.Equal(t, 1, n, "ends of %d", pid)
	}
}

// Metrics per worker are labelled by pid, and every restart makes new series. Here
// the index is the label: its counts go on over restarts and never go back.
func TestCountsOfAnIndexOutliveItsProcesses_Row76(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	pids := map[int]bool{}
	var before []task.WorkerStatus
	for range 4 {
		for range 10 {
			_, err := p.Sync(t.Context(), Echo{1}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
			require.NoError(t, err)
		}
		pid := p.Status()[0].PID
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		p.exited(pid)
		rows := p.status(func(rows []task.WorkerStatus) bool { return len(rows) == 2 && rows[0].Accepting && rows[0].PID != pid })
		for i, r := range rows {
			assert.Equal(t, i, r.Index)
			pids[r.PID] = true
			if before != nil {
				assert.GreaterOrEqual(t, r.Success, before[i].Success)
				assert.GreaterOrEqual(t, r.Accepted, before[i].Accepted)
			}
		}
		before = rows
	}
	assert.Len(t, pids, 5, "processes, but two labels")
	assert.EqualValues(t, 40, p.still().Success)
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "worker pool: exited") {
			assert.Contains(t, line, "worker=")
		}
	}
}
