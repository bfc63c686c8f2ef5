package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// newSharedPool returns a pool of one worker whose calls share one connection, which is open.
func newSharedPool(t *testing.T, handle handler) (*pool, *fake) {
	t.Helper()
	p := newPool(t, 1, 128)
	w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if string(pkg.Task) == "first" {
			return echo(c, pkg)
		}
		return handle(c, pkg)
	})
	p.loadWorker()
	_, f := p.client.Do(t.Context(), &Call{Type: protocol.Sync, Task: "first"})
	require.Nil(t, f)
	w.packages.Store(0)
	return p, w
}

// start makes a call in a new goroutine.
func (p *pool) start(ctx context.Context, call *Call) <-chan *Failure {
	done := make(chan *Failure, 1)
	go func() {
		_, f := p.client.Do(ctx, call)
		done <- f
	}()
	return done
}

func TestManyCallersShareAConnectionWhoseAnswersComeInAnyOrder(t *testing.T) {
	t.Parallel()
	const callers = 32
	var mu sync.Mutex
	var held []protocol.Package
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		mu.Lock()
		defer mu.Unlock()
		require.False(t, pkg.Alone)
		held = append(held, pkg)
		for len(held) == callers {
			for i := range held {
				_ = echo(c, held[callers-1-i])
			}
			held = nil
		}
		return nil
	})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			reply, f := p.client.Do(context.Background(), syncCall(fmt.Sprint(i)))
			if f != nil || textOf(reply) != fmt.Sprint(i) {
				t.Errorf("call %d: %q, %v", i, textOf(reply), f)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, w.accepted.Load())
}

func TestABlockedTaskHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		if string(pkg.Task) == "block" {
			return nil
		}
		return echo(c, pkg)
	})
	ctx, cancel := context.WithCancel(t.Context())
	blocked := p.start(ctx, &Call{Type: protocol.Sync, Task: "block"})
	waitFor(t, func() bool { return w.packages.Load() == 1 })
	for range 10 {
		_, f := p.client.Do(t.Context(), syncCall(""))
		require.Nil(t, f)
	}
	cancel()
	f := <-blocked
	require.ErrorIs(t, f, context.Canceled)
	require.Equal(t, MayHaveRun, f.Delivery)
}

func TestALateAnswerIsDroppedAndTheConnectionStays(t *testing.T) {
	t.Parallel()
	late := make(chan protocol.Package, 1)
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		if string(pkg.Task) == "late" {
			late <- pkg
			return nil
		}
		select {
		case first := <-late:
			_ = echo(c, first)
		default:
		}
		return echo(c, pkg)
	})
	call := &Call{Type: protocol.Sync, Task: "late", Payload: text("of the late call")}
	call.Deadline = within(500 * time.Millisecond)
	_, f := p.client.Do(t.Context(), call)
	require.Equal(t, protocol.StatusSockTimeout, f.Status)
	require.Equal(t, MayHaveRun, f.Delivery)
	for i := range 3 {
		reply, f := p.client.Do(t.Context(), syncCall(fmt.Sprint(i)))
		require.Nil(t, f)
		require.Equal(t, fmt.Sprint(i), textOf(reply))
	}
	require.EqualValues(t, 1, w.accepted.Load())
}

// successor starts the next generation of w on the same listener.
func (p *pool) successor(w *fake, handle handler) *fake {
	l := w.handOver()
	return p.serve(0, w.generation+1, l, p.row(0, w.generation+1), handle)
}

func TestADrainAnswersWhatItReadAndTheRestGoesElsewhere(t *testing.T) {
	t.Parallel()
	read := make(chan protocol.Package, 3)
	var conn *fakeConn
	p, old := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		conn = c
		read <- pkg
		return nil
	})
	answered := p.start(t.Context(), syncCall("answered"))
	first := <-read
	lost := p.start(t.Context(), syncCall("read, never answered"))
	second := <-read
	unread := p.start(t.Context(), syncCall("not read, says the notice"))
	<-read
	next := p.successor(old, echo)
	require.NoError(t, conn.write(protocol.AppendNotice(nil, second.ID)))
	for range 5 {
		require.Nil(t, <-p.start(t.Context(), syncCall("to the successor")))
	}
	require.EqualValues(t, 5, next.packages.Load())
	require.NoError(t, echo(conn, first))
	require.Nil(t, <-answered)
	require.NoError(t, conn.conn.Close())
	f := <-lost
	require.Equal(t, protocol.StatusSockTimeout, f.Status)
	require.Equal(t, MayHaveRun, f.Delivery)
	f = <-unread
	require.Equal(t, protocol.StatusSockTimeout, f.Status)
	require.Equal(t, NotRun, f.Delivery)
}

// gunicorn #2409, #2529, #3038: stop or recycle resets connections: 0 errors
func TestAWriteThatMeetsADrainGoesElsewhere_Row58(t *testing.T) {
	t.Parallel()
	var conn *fakeConn
	p, old := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		conn = c
		return echo(c, pkg)
	})
	require.Nil(t, <-p.start(t.Context(), syncCall("")))
	next := p.successor(old, echo)
	// The caller has the old connection when the worker closes its reading side.
	s := p.client.conns[0].shared
	require.NoError(t, conn.drain(0))
	row, _ := p.table.Current(0)
	w := p.client.waiters.get()
	b := p.client.budget(t.Context(), syncCall(""))
	frame, f := p.client.encode(nil, nil, &b, syncCall(""))
	require.Nil(t, f)
	if s.submit(w.fill(&b, syncCall(""), frame)) {
		_, f, o := p.client.await(&b, w, s)
		require.Equal(t, elsewhere, o)
		require.Equal(t, NotRun, f.Delivery)
	}
	require.Nil(t, <-p.start(t.Context(), syncCall("")))
	require.EqualValues(t, 1, next.packages.Load())
	require.Zero(t, p.client.chooser.InFlight(row))
}

func TestALossEndsAllCallsWithWhatTheRowKnows(t *testing.T) {
	t.Parallel()
	const callers, known = 12, 5
	var all sync.WaitGroup
	all.Add(callers)
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		if c.packages.Load() <= known {
			c.row.ConnRead(c.place, pkg.ID)
		}
		if c.packages.Load() == callers {
			c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
			return errHangUp
		}
		return nil
	})
	var mayHaveRun, notRun int
	var done []<-chan *Failure
	for range callers {
		done = append(done, p.start(t.Context(), syncCall("")))
	}
	for _, d := range done {
		f := <-d
		require.Equal(t, "worker 0 (pid 1001) was lost: killed by signal 9", f.Message)
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		if f.Delivery == NotRun {
			notRun++
		} else {
			mayHaveRun++
		}
	}
	require.Equal(t, known, mayHaveRun)
	require.Equal(t, callers-known, notRun)
	require.EqualValues(t, callers, w.packages.Load())
}

func TestAFullSocketHoldsNobodyPastTheDeadline(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		<-stop
		return echo(c, pkg)
	})
	const callers, timeout = 100, 200 * time.Millisecond
	began := sys.Now()
	var done []<-chan *Failure
	for range callers {
		call := syncCall(strings.Repeat("x", 12<<10))
		call.Deadline = began + int64(timeout)
		done = append(done, p.start(t.Context(), call))
	}
	notRun := 0
	for _, d := range done {
		f := <-d
		require.NotNil(t, f)
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		if f.Delivery == NotRun {
			notRun++
		}
	}
	require.Less(t, time.Duration(sys.Now()-began), limit)
	close(stop)
	// The socket still takes whole frames, and none that was reported as not run.
	reply, f := p.client.Do(t.Context(), syncCall("after"))
	require.Nil(t, f)
	require.Equal(t, "after", textOf(reply))
	require.LessOrEqual(t, w.packages.Load(), int64(callers-notRun+1))
	require.EqualValues(t, 1, w.accepted.Load())
}

func TestLargeFramesHaveAConnectionOfTheirOwn(t *testing.T) {
	t.Parallel()
	p, w := newSharedPool(t, func(c *fakeConn, pkg protocol.Package) error {
		require.True(t, pkg.Alone)
		return echo(c, pkg)
	})
	_, f := p.client.Do(t.Context(), syncCall(strings.Repeat("x", largeFrame)))
	require.Nil(t, f)
	require.EqualValues(t, 2, w.accepted.Load())
}

func TestASharedConnectionThatWasClosedIsReplaced(t *testing.T) {
	t.Parallel()
	p, w := newSharedPool(t, echo)
	for range 3 {
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.conn.Close()
		}
		w.mu.Unlock()
		_, f := p.client.Do(t.Context(), syncCall(""))
		require.Nil(t, f, "%v", f)
	}
	require.EqualValues(t, 3, w.packages.Load())
	require.EqualValues(t, 4, w.accepted.Load())
}

// If the reader meets the end during a write, it waits for the result of the write.
func TestALossInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	p, w := newSharedPool(t, func(*fakeConn, protocol.Package) error {
		<-stop
		return errHangUp
	})
	row, _ := p.table.Current(0)
	const callers = 100
	var done []<-chan *Failure
	for range callers {
		done = append(done, p.start(t.Context(), syncCall(strings.Repeat("x", 12<<10))))
	}
	s := p.client.conns[0].shared
	waitFor(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.waiting.n == callers && s.writing && s.sent > 0
	})
	p.table.WorkerRow(row.Number()).SetAccepting(false)
	close(stop)
	count := map[Delivery]int{}
	for _, d := range done {
		f := <-d
		require.NotNil(t, f)
		count[f.Delivery]++
	}
	require.NotZero(t, count[MayHaveRun])
	require.NotZero(t, count[NotRun])
	require.LessOrEqual(t, int64(count[MayHaveRun])*(12<<10), s.sent,
		"only frames that the socket took whole may have run")
	require.EqualValues(t, 1, w.packages.Load())
}

// unbit/uwsgi #1804, #2444, #1999: burst of 2,000 calls: no connect error while slots are free; fd
// count returns to the start value
func TestABurstOpensFewConnections_Row20(t *testing.T) {
	t.Parallel()
	const burst = 2000
	p := newPool(t, 1, burst)
	w := p.worker(0, echo)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range burst {
		wg.Go(func() {
			<-start
			if _, f := p.client.Do(context.Background(), syncCall("")); f != nil {
				t.Error(f)
			}
		})
	}
	close(start)
	wg.Wait()
	require.LessOrEqual(t, w.accepted.Load(), int64(exclusiveCalls+1))
}
