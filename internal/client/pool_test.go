package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
	"github.com/taskd-go/task/worker"
)

// echoCall is a call of a real worker's echo task.
func echoCall(task, payload string) *Call {
	return &Call{Type: protocol.Sync, Task: task, Payload: binaryArgument([]byte(payload)), Deadline: within(limit)}
}

// requireStill checks that all counts add up once nothing runs any more.
func (p *pool) requireStill() {
	p.t.Helper()
	waitFor(p.t, func() bool {
		for _, s := range p.table.Status() {
			if s.Running != 0 || s.Accepted != s.Success+s.Fail+s.Lost {
				return false
			}
		}
		return true
	})
	p.requireNothingInFlight()
}

// gunicorn #3626, PR #3687: 10,000 mixed calls with random time-outs, on real workers: no answer to
// the wrong caller, `running` ends at 0
func TestNoAnswerOfARealWorkerReachesAnotherCaller_Row50(t *testing.T) {
	t.Parallel()
	p := newRealPool(t, 2, 64)
	const callers, each = 40, 10_000 / 40
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				realMixedCall(t, p.client, fmt.Sprint(i, " ", j))
			}
		})
	}
	wg.Wait()
	p.requireStill()
}

func realMixedCall(t *testing.T, c *Client, payload string) {
	call := echoCall("echo", payload)
	if rand.IntN(4) == 0 {
		call.Task = "nap"
	}
	ctx := context.Background()
	kind := rand.IntN(8)
	switch kind {
	case 0, 1:
		call.Deadline = within(rand.N(3 * time.Millisecond))
	case 2:
		limited, cancel := context.WithTimeout(ctx, rand.N(3*time.Millisecond))
		defer cancel()
		ctx = limited
	case 3:
		call.Cancel = true
		call.Deadline = within(rand.N(3 * time.Millisecond))
	case 4:
		realBatch(t, c, payload)
		return
	}
	reply, f := c.Do(ctx, call)
	requireOwnAnswer(t, payload, reply, f)
	if f != nil && kind > 4 {
		t.Errorf("call %q without a short time-out: %v", payload, f)
	}
}

func realBatch(t *testing.T, c *Client, payload string) {
	calls := make([]Call, 4)
	for i := range calls {
		calls[i] = *echoCall("echo", fmt.Sprint(payload, i))
		calls[i].Deadline = within(rand.N(3 * time.Millisecond))
		calls[i].Wait = time.Millisecond
	}
	replies, failures := c.Many(context.Background(), calls)
	for i := range calls {
		requireOwnAnswer(t, fmt.Sprint(payload, i), replies[i], failures[i])
	}
}

func requireOwnAnswer(t *testing.T, payload string, reply Reply, f *Failure) {
	t.Helper()
	if f == nil && bytesOf(reply) != payload {
		t.Errorf("call %q got the answer %q", payload, bytesOf(reply))
	}
	allowed := []protocol.Status{protocol.StatusSockTimeout, protocol.StatusExpired, protocol.StatusBusy}
	if f != nil && !slices.Contains(allowed, f.Status) {
		t.Errorf("call %q: %v", payload, f)
	}
}

// cpython #139462, #87472: kill one of the W: others keep serving; the lost call's error has pid
// and signal
func TestAKilledWorkerLosesItsOwnCallsAlone_Row32(t *testing.T) {
	t.Parallel()
	p := newRealPool(t, 2, 64)
	row, _ := p.table.Current(0)
	const callers = 24
	failures := make(chan *Failure, callers)
	for range callers {
		go func() {
			for ended := false; !ended; _, ended = row.Ended(1) {
				if _, f := p.client.Do(context.Background(), echoCall("nap", "x")); f != nil {
					failures <- f
					return
				}
			}
			failures <- nil
		}()
	}
	waitFor(t, func() bool { return row.Running() > 8 })
	pid := p.children[0].cmd.Process.Pid
	p.children[0].kill()
	p.rows[0].Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
	lost := 0
	for range callers {
		f := <-failures
		if f == nil {
			continue
		}
		lost++
		require.Equal(t, protocol.StatusSockTimeout, f.Status, f.Message)
		require.Equal(t, fmt.Sprintf("worker 0 (pid %d) was lost: killed by signal 9", pid), f.Message)
	}
	require.NotZero(t, lost)
	p.requireStill()
}

// swoft #1271; swoole-src #94, #3269: all W SIGSTOPped: callers return at their deadline, CPU of
// the caller ~0
func TestStoppedProcessesHoldNobodyPastTheDeadline_Row68(t *testing.T) {
	p := newRealPool(t, 2, 128)
	_, f := p.client.Do(t.Context(), echoCall("echo", "x"))
	require.Nil(t, f)
	for _, c := range p.children {
		require.NoError(t, c.cmd.Process.Signal(unix.SIGSTOP))
		_, err := unix.Wait4(c.cmd.Process.Pid, nil, unix.WUNTRACED, nil) // until it is stopped
		require.NoError(t, err)
	}
	const timeout = 400 * time.Millisecond
	began, cpu := sys.Now(), cpuTime(t)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			call := echoCall("echo", "x")
			call.Deadline = began + int64(timeout)
			if i%2 == 0 {
				call.Wait = time.Hour
			}
			if _, f := p.client.Do(context.Background(), call); f == nil || f.Status != protocol.StatusSockTimeout {
				t.Errorf("got %v, want a time-out", f)
			}
		})
	}
	wg.Wait()
	require.Less(t, time.Duration(sys.Now()-began), limit)
	require.Less(t, cpuTime(t)-cpu, 5*timeout/4, "a caller that spins takes a processor")
}

// A served is a worker.Server in this process.
type served struct {
	*worker.Server
	done chan error
}

func (p *pool) server(index int, generation uint64, l *net.UnixListener) (*served, sharedstate.ParentRow) {
	p.t.Helper()
	row, err := p.table.Allocate(index, generation)
	require.NoError(p.t, err)
	cfg := workerConfig(p.table.Table, p.table.WorkerRow(row.Number()), l, index, generation)
	s := &served{worker.New(cfg), make(chan error, 1)}
	s.Ready()
	return s, row
}

func (s *served) serve() { s.done <- s.Serve() }

// gunicorn #2409, #2529, #3038, #2567: constant load, recycle each W 20 times: 0 errors except BUSY
func TestRecyclingUnderLoadFailsNoCall_Row58(t *testing.T) {
	t.Parallel()
	p := newPoolOf(t, 2, 128, 4<<20)
	servers, rows, listeners := make([]*served, 2), make([]sharedstate.ParentRow, 2), make([]*net.UnixListener, 2)
	for i := range 2 {
		listeners[i] = p.listen(i)
		servers[i], rows[i] = p.server(i, 1, listeners[i])
		p.table.SetCurrent(i, rows[i])
		go servers[i].serve()
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for j := 0; !stop.Load(); j++ {
				recycledCall(t, p.client, i, fmt.Sprint(i, " ", j))
			}
		})
	}
	for generation := uint64(2); generation <= 21; generation++ {
		for i := range 2 {
			next, row := p.server(i, generation, listeners[i])
			p.table.SetCurrent(i, row)
			<-servers[i].Drain(limit, false)
			require.NoError(t, listeners[i].SetDeadline(time.Time{}))
			go next.serve()
			require.NoError(t, <-servers[i].done)
			rows[i].Finish(sharedstate.End{Reason: tasktype.ReasonCrashed})
			rows[i].Free()
			servers[i], rows[i] = next, row
		}
	}
	stop.Store(true)
	wg.Wait()
	p.requireStill()
	for i := range 2 {
		servers[i].Drain(limit, false)
		require.NoError(t, <-servers[i].done)
	}
}

func recycledCall(t *testing.T, c *Client, caller int, payload string) {
	task := "echo"
	if caller%4 == 0 {
		task = "nap"
	}
	if caller%6 == 0 {
		replies, failures := c.Many(context.Background(), []Call{*echoCall(task, payload), *echoCall(task, payload)})
		for i := range replies {
			if failures[i] != nil || bytesOf(replies[i]) != payload {
				t.Errorf("one of many: %q, %v", bytesOf(replies[i]), failures[i])
			}
		}
		return
	}
	reply, f := c.Do(context.Background(), echoCall(task, payload))
	if f != nil || bytesOf(reply) != payload {
		t.Errorf("%q: %q, %v", payload, bytesOf(reply), f)
	}
}

// yarp #75; sozu #1411: 64 client processes start one call each, staggered by 1 ms, 8 W: max/mean
// load <= 1.5; with WithWait no BUSY
func TestManyClientsDoNotStormOneWorker_Row67(t *testing.T) {
	t.Parallel()
	const workers, clients = 8, 64
	p := newPoolOf(t, workers, 128, 4<<20)
	for i := range workers {
		p.worker(i, func(c *fakeConn, pkg protocol.Package) error {
			c.row.Admit()
			return nil
		})
	}
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range clients {
		<-tick.C
		c := New(p.client.cfg) // with a chooser of its own, as another process has
		wg.Go(func() {
			_, f := c.Do(ctx, &Call{Type: protocol.Sync, Task: "echo", Wait: limit})
			if f == nil || f.Status != protocol.StatusSockTimeout {
				t.Errorf("got %v, want the end of a call that a worker took", f)
			}
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool {
		sum := 0
		for i := range workers {
			row, _ := p.table.Current(i)
			sum += row.Running()
		}
		return sum == clients
	})
	for i := range workers {
		row, _ := p.table.Current(i)
		require.LessOrEqual(t, row.Running(), clients/workers*3/2)
	}
	cancel()
	wg.Wait()
}

func TestASmallCallAllocatesLittle(t *testing.T) {
	p := newRealPool(t, 1, 64)
	argument, err := binaryArgument([]byte("argument"))(nil, nil)
	require.NoError(t, err)
	call := echoCall("echo", "")
	call.Payload = func(dst []byte, _ *codec.Lent) ([]byte, error) { return append(dst, argument...), nil }
	ended, cancel := context.WithCancel(context.Background())
	defer cancel()
	contexts := map[string]context.Context{"no end": context.Background(), "a context that can end": ended}
	for _, connection := range []string{"own", "shared"} {
		for name, ctx := range contexts {
			t.Run(connection+" connection, "+name, func(t *testing.T) {
				got := testing.AllocsPerRun(200, func() {
					call.Deadline = within(limit)
					if _, f := p.client.Do(ctx, call); f != nil {
						t.Fatal(f)
					}
				})
				t.Logf("%v allocations", got)
				require.LessOrEqual(t, got, 4.0)
			})
		}
		p.loadWorker()
	}
}
