package client

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

func numbered(n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = *syncCall(fmt.Sprint(i))
	}
	return calls
}

// requireAnswered checks that each call has its own answer.
func requireAnswered(t *testing.T, replies []Reply, failures []*Failure) {
	t.Helper()
	for i := range replies {
		require.Nil(t, failures[i], "call %d: %v", i, failures[i])
		require.Equal(t, fmt.Sprint(i), textOf(replies[i]))
	}
}

// requireNothingInFlight checks that each pick was given back.
func (p *pool) requireNothingInFlight() {
	p.t.Helper()
	for i := range p.table.Workers() {
		row, _ := p.table.Current(i)
		require.Zero(p.t, p.client.chooser.InFlight(row), "worker %d", i)
	}
}

func TestManyAreSpreadOverTheWorkers(t *testing.T) {
	t.Parallel()
	p := newPool(t, 4, 128)
	var workers []*fake
	for i := range 4 {
		workers = append(workers, p.worker(i, echo))
	}
	for range 3 {
		manyAnswered(t, p, 100)
	}
	for _, w := range workers {
		require.InDelta(t, 75, w.packages.Load(), 25)
		require.EqualValues(t, 1, w.accepted.Load())
	}
	p.requireNothingInFlight()
}

func manyAnswered(t *testing.T, p *pool, n int) {
	t.Helper()
	replies, failures := p.client.Many(t.Context(), numbered(n))
	requireAnswered(t, replies, failures)
}

func TestNoneIsNothing(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 1)
	replies, failures := p.client.Many(t.Context(), nil)
	require.Empty(t, replies)
	require.Empty(t, failures)
}

func TestWhatExceedsTheSlotsIsBusy(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 4)
	for i := range 2 {
		p.worker(i, func(c *fakeConn, pkg protocol.Package) error {
			c.tasks.Go(func() {
				<-time.After(200 * time.Millisecond) // longer than Many takes to find the other calls busy
				_ = echo(c, pkg)
			})
			return nil
		})
	}
	_, failures := p.client.Many(t.Context(), numbered(20))
	full := 0
	for _, f := range failures {
		if f != nil {
			require.Equal(t, protocol.StatusBusy, f.Status)
			require.Equal(t, NotRun, f.Delivery)
			full++
		}
	}
	require.Equal(t, 12, full)

	calls := numbered(20)
	for i := range calls {
		calls[i].Wait = limit
	}
	replies, failures := p.client.Many(t.Context(), calls)
	requireAnswered(t, replies, failures)
	p.requireNothingInFlight()
}

func TestManyOfAllKinds(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 64)
	for i := range 2 {
		p.worker(i, func(c *fakeConn, pkg protocol.Package) error {
			switch string(pkg.Task) {
			case "refuse":
				return c.refuse(pkg.ID, protocol.StatusIllegal, "unknown")
			case "never":
				return nil
			}
			return echo(c, pkg)
		})
	}
	manyAnswered(t, p, 8) // so that no deadline passes while a connection is opened
	calls := numbered(8)
	calls[1].Payload = text(strings.Repeat("x", largeFrame))
	calls[2].Cancel = true
	calls[3].Task = "refuse"
	calls[4].Task, calls[4].Deadline = "never", within(time.Second)
	calls[5].Payload = func([]byte, *codec.Lent) ([]byte, error) { return nil, fmt.Errorf("no") }
	calls[6].Payload = text(strings.Repeat("x", testLimit))
	calls[7].Type = protocol.Async
	replies, failures := p.client.Many(t.Context(), calls)
	status := make([]protocol.Status, len(calls))
	for i, f := range failures {
		if f != nil {
			status[i] = f.Status
		}
	}
	require.Equal(t, []protocol.Status{0, 0, 0, -4, -7, -5, -8, 0}, status)
	require.Equal(t, MayHaveRun, failures[4].Delivery)
	require.Len(t, textOf(replies[1]), largeFrame)
	require.Equal(t, "2", textOf(replies[2]))
	p.requireNothingInFlight()
}

func TestTheContextsEndEndsAllOfMany(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 4)
	ctx, cancel := context.WithCancel(t.Context())
	p.worker(0, func(c *fakeConn, _ protocol.Package) error {
		if c.packages.Load() == 4 {
			cancel()
		}
		return nil
	})
	calls := numbered(8)
	calls[3].Cancel = true
	for i := range calls {
		calls[i].Deadline, calls[i].Wait = 0, time.Hour
	}
	_, failures := p.client.Many(ctx, calls)
	for i, f := range failures {
		require.ErrorIs(t, f, context.Canceled)
		require.Equal(t, i >= 4, f.Delivery == NotRun, "call %d", i)
	}
	p.requireNothingInFlight()
}

func TestManyToAWorkerThatIsGoneGoElsewhere(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 64)
	p.row(0, 1) // no socket
	w := p.worker(1, echo)
	manyAnswered(t, p, 40)
	require.EqualValues(t, 40, w.packages.Load())
	p.requireNothingInFlight()
}

func TestManyToAWorkerThatDiesAreLostOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if c.packages.Load() == 20 {
			return errHangUp
		}
		return nil
	})
	began := time.Now()
	calls := numbered(20)
	for i := range calls {
		calls[i].Wait = limit
	}
	_, failures := p.client.Many(t.Context(), calls)
	require.Less(t, time.Since(began), 15*endWait, "all calls wait for the one end record together")
	for _, f := range failures {
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		require.Equal(t, MayHaveRun, f.Delivery)
	}
	require.EqualValues(t, 20, w.packages.Load())
	p.requireNothingInFlight()
}

func TestAWorkersOwnBusyReturnsOneOfManyToWaiting(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if c.packages.Load()%3 == 0 {
			return c.refuse(pkg.ID, protocol.StatusBusy, "full")
		}
		return echo(c, pkg)
	})
	calls := numbered(20)
	for i := range calls {
		calls[i].Wait = limit
	}
	replies, failures := p.client.Many(t.Context(), calls)
	requireAnswered(t, replies, failures)
	require.Greater(t, w.packages.Load(), int64(20))
	p.requireNothingInFlight()
}

func TestManyAfterClose(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	require.NoError(t, p.client.Close(t.Context()))
	_, failures := p.client.Many(t.Context(), numbered(2))
	for _, f := range failures {
		require.ErrorIs(t, f, ErrClosed)
	}
}

func TestADeadlineThatPassesBeforeThereIsAConnectionEndsItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	l, row := p.listen(0), p.row(0, 1)
	calls := numbered(4)
	calls[2].Deadline = within(20 * time.Millisecond)
	done := make(chan []*Failure, 1)
	go func() {
		_, failures := p.client.Many(context.Background(), calls)
		done <- failures
	}()
	waitFor(t, func() bool { return sys.Now() > calls[2].Deadline && p.client.chooser.InFlight(row.Row) == 3 })
	p.serve(0, 1, l, row, echo)
	for i, f := range <-done {
		if i != 2 {
			require.Nil(t, f)
			continue
		}
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		require.Equal(t, NotRun, f.Delivery)
	}
}

func TestNothingOfManyIsSentAfterTheContextsEnd(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 64)
	w := p.worker(0, echo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := numbered(4)
	calls[1].Wait, calls[2].Wait = limit, limit
	_, failures := p.client.Many(ctx, calls)
	for _, f := range failures {
		require.ErrorIs(t, f, context.Canceled)
		require.Equal(t, NotRun, f.Delivery)
	}
	require.Zero(t, w.packages.Load())
	p.requireNothingInFlight()
}

func TestResultsOfManyDoNotReachIntoEachOther(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 128)
	p.worker(0, echo)
	replies, failures := p.client.Many(t.Context(), numbered(100))
	for i := range replies {
		_ = append(replies[i].Data, "too much"...)
	}
	requireAnswered(t, replies, failures)
}
