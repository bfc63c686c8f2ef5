package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// waitFor polls for events that cannot be waited for.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, limit, time.Millisecond)
}

// waitForHangUp blocks until the client has closed its end, and reads nothing.
func waitForHangUp(c *fakeConn) error {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var events int16
		if err := raw.Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLHUP}}
			_, _ = unix.Poll(poll, 10)
			events = poll[0].Revents
		}); err != nil || events&unix.POLLHUP != 0 {
			return err
		}
	}
}

func shrinkBacklog(t *testing.T, l *net.UnixListener) {
	t.Helper()
	raw, err := l.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 1) }))
	require.NoError(t, err)
}

// gunicorn #3626, PR #3687: late answer is given to the NEXT caller, and so on without end: time
// out call A, call B on the same W gets B's answer; ids checked; 10,000 mixed calls
func TestNoAnswerReachesAnotherCaller_Row50(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 64)
	for i := range 2 {
		p.worker(i, func(c *fakeConn, pkg protocol.Package) error {
			if pkg.Alone && rand.IntN(4) == 0 {
				c.tasks.Go(func() {
					<-time.After(rand.N(3 * time.Millisecond))
					_ = echo(c, pkg)
				})
				return nil
			}
			return echo(c, pkg)
		})
	}
	const callers, each = 32, 10_000 / 32
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				mixedCall(t, p, fmt.Sprint(i, " ", j))
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		row, _ := p.table.Current(i)
		require.Zero(t, p.client.chooser.InFlight(row))
	}
}

// mixedCall has a time-out that an answer may or may not meet.
func mixedCall(t *testing.T, p *pool, payload string) {
	call := syncCall(payload)
	if rand.IntN(8) == 0 {
		call.Type = protocol.Async
	}
	ctx, unlimited := context.Background(), false
	if rand.IntN(2) == 0 {
		call.Deadline = within(rand.N(3 * time.Millisecond))
	} else if rand.IntN(2) == 0 {
		c, cancel := context.WithTimeout(ctx, rand.N(3*time.Millisecond))
		defer cancel()
		ctx = c
	} else {
		unlimited = true
	}
	reply, f := p.client.Do(ctx, call)
	if f == nil && textOf(reply) != payload {
		t.Errorf("call %q got the answer %q", payload, textOf(reply))
	}
	if f != nil && (unlimited || f.Status != protocol.StatusSockTimeout) {
		t.Errorf("call %q: %v", payload, f)
	}
}

// swoft #1271; swoole-src #94, #3269: all W SIGSTOPped: callers return at their deadline, CPU of
// the caller ~0
func TestStoppedWorkersHoldNobodyPastTheDeadline_Row68(t *testing.T) {
	p := newPool(t, 2, 128)
	p.worker(0, silent) // greets, then answers nothing
	p.listen(1)         // not even greets
	p.row(1, 1)
	const timeout = 400 * time.Millisecond
	before, began := cpuTime(t), sys.Now()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			call := syncCall("")
			call.Deadline = began + int64(timeout)
			_, f := p.client.Do(context.Background(), call)
			if f == nil || f.Status != protocol.StatusSockTimeout {
				t.Errorf("got %v, want a time-out", f)
			}
		})
	}
	wg.Wait()
	require.Less(t, time.Duration(sys.Now()-began), limit)
	require.Less(t, cpuTime(t)-before, 5*timeout/4, "a caller that spins takes a processor")
}

// cpuTime returns the CPU time of this process, in user mode and in the kernel.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestEachOfManyDeadlinesCounts(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{"own", "shared"} {
		t.Run(connection+" connection", func(t *testing.T) {
			p := newPool(t, 1, 64)
			p.worker(0, silent)
			if connection == "shared" {
				p.loadWorker()
			}
			for range 3 {
				var done []<-chan *Failure
				began := sys.Now()
				for _, ms := range []time.Duration{40, 10, 30, 20} {
					call := syncCall("")
					call.Deadline = began + int64(ms*time.Millisecond)
					done = append(done, p.start(t.Context(), call))
				}
				for _, d := range done {
					require.ErrorIs(t, <-d, os.ErrDeadlineExceeded)
				}
				require.Less(t, time.Duration(sys.Now()-began), limit)
			}
		})
	}
}
