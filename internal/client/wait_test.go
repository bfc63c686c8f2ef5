package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

// roadrunner #798, #1972: wait option: burst of 3x capacity with short tasks and wait 1 s: 0 BUSY
func TestABurstOfThreeTimesTheCapacityWaits_Row63(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 4)
	for i := range 2 {
		p.worker(i, func(c *fakeConn, pkg protocol.Package) error {
			c.tasks.Go(func() {
				<-time.After(5 * time.Millisecond)
				_ = echo(c, pkg)
			})
			return nil
		})
	}
	done := make(chan *Failure, 24)
	for range cap(done) {
		go func() {
			call := syncCall("")
			call.Wait = limit
			_, f := p.client.Do(context.Background(), call)
			done <- f
		}()
	}
	for range cap(done) {
		require.Nil(t, <-done)
	}
}

func TestAWorkersOwnBusyReturnsACallToWaiting(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if c.packages.Load() < 3 {
			return c.refuse(pkg.ID, protocol.StatusBusy, "full")
		}
		return echo(c, pkg)
	})
	call := syncCall("patient")
	_, f := p.client.Do(t.Context(), call)
	require.Equal(t, protocol.StatusBusy, f.Status)
	require.EqualValues(t, 1, w.packages.Load(), "a call that does not wait is sent once")
	call.Wait = limit
	reply, f := p.client.Do(t.Context(), call)
	require.Nil(t, f)
	require.Equal(t, "patient", textOf(reply))
	require.EqualValues(t, 3, w.packages.Load())
}

func TestAWaitThatIsInVainIsBusy(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	p.row(0, 1).SetAccepting(false)
	call := syncCall("")
	call.Wait = 20 * time.Millisecond
	_, f := p.client.Do(t.Context(), call)
	require.Equal(t, protocol.StatusBusy, f.Status)
	require.Equal(t, NotRun, f.Delivery)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	call.Wait = time.Hour
	_, f = p.client.Do(ctx, call)
	require.ErrorIs(t, f, context.DeadlineExceeded)
	require.Equal(t, protocol.StatusSockTimeout, f.Status)
	require.Equal(t, NotRun, f.Delivery)
}
