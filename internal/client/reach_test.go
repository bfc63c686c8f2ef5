package client

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// gunicorn #2409, #2529, #3038: stop or recycle resets connections: 0 errors
func TestAnIdleConnectionOfADrainedWorkerIsNoFailure_Row58(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	var conn *fakeConn
	old := p.worker(0, func(c *fakeConn, pkg protocol.Package) error { conn = c; return echo(c, pkg) })
	_, f := p.client.Do(t.Context(), syncCall(""))
	require.Nil(t, f)
	for generation := uint64(2); generation < 6; generation++ {
		listener := old.handOver()
		require.NoError(t, conn.drain(0))
		next := p.serve(0, generation, listener, p.row(0, generation), old.handle)
		reply, f := p.client.Do(t.Context(), syncCall("again"))
		require.Nil(t, f, "%v", f)
		require.Equal(t, "again", textOf(reply))
		require.EqualValues(t, 1, next.accepted.Load())
		old = next
	}
}

func TestASocketThatNoLongerTakesPackagesIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 1)
	w := p.worker(0, echo)
	for range 3 {
		_, f := p.client.Do(t.Context(), syncCall(""))
		require.Nil(t, f, "%v", f)
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.conn.Close()
		}
		w.mu.Unlock()
	}
	require.EqualValues(t, 3, w.packages.Load())
	require.EqualValues(t, 3, w.accepted.Load())
}

func TestAWorkerThatEndsBeforeItsGreetingIsLeftForAnother(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 8)
	p.listen(0) // connects, but no process accepts
	dead := p.row(0, 1)
	done := make(chan *Failure, 8)
	for range cap(done) {
		go func() {
			_, f := p.client.Do(context.Background(), syncCall(""))
			done <- f
		}()
	}
	waitFor(t, func() bool { return p.client.chooser.InFlight(dead.Row) == cap(done) })
	p.worker(1, echo)
	dead.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
	for range cap(done) {
		require.Nil(t, <-done)
	}
}

func TestThePredecessorsGreetingIsNotTaken(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	old := p.worker(0, echo)
	row := p.row(0, 2) // current before the old one has stopped
	done := p.start(t.Context(), syncCall("patient"))
	waitFor(t, func() bool { return old.accepted.Load() > 1 })
	next := p.serve(0, 2, old.handOver(), row, echo)
	require.Nil(t, <-done)
	require.Zero(t, old.packages.Load())
	require.EqualValues(t, 1, next.packages.Load())
}

func TestASuccessorThatGreetsIsFine(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	l := p.listen(0)
	p.row(0, 1)
	done := make(chan Reply, 1)
	go func() {
		reply, _ := p.client.Do(context.Background(), syncCall("late"))
		done <- reply
	}()
	first, _ := p.table.Current(0)
	waitFor(t, func() bool { return p.client.chooser.InFlight(first) == 1 })
	p.table.WorkerRow(first.Number()).SetAccepting(false)
	p.serve(0, 2, l, p.row(0, 2), echo)
	require.Equal(t, "late", textOf(<-done))
}

func TestAFullBacklogIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	l := p.listen(0)
	shrinkBacklog(t, l)
	row := p.row(0, 1)
	done := make(chan *Failure, 16)
	for range cap(done) {
		go func() {
			_, f := p.client.Do(context.Background(), syncCall(""))
			done <- f
		}()
	}
	waitFor(t, func() bool { return p.client.chooser.InFlight(row.Row) == cap(done) })
	p.serve(0, 1, l, row, echo)
	for range cap(done) {
		require.Nil(t, <-done)
	}
}
