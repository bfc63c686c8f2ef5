package client

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// syncCall is a call of the echo task with a deadline that no test reaches.
func syncCall(payload string) *Call {
	return &Call{Type: protocol.Sync, Task: "echo", Payload: text(payload), Deadline: within(limit)}
}

func textOf(r Reply) string {
	resp := protocol.Response{Data: r.Data}
	return resp.Text()
}

func TestACallBringsItsAnswer(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	got := make(chan protocol.Package, 1)
	p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		got <- pkg
		return echo(c, pkg)
	})
	call := syncCall("hello")
	call.Meta = map[string]string{"trace": "1"}
	call.Soft, call.Hard = time.Second, 2*time.Second
	reply, f := p.client.Do(t.Context(), call)
	require.Nil(t, f)
	require.Equal(t, "hello", textOf(reply))
	require.NotZero(t, reply.TaskID)

	pkg := <-got
	require.Equal(t, "echo", string(pkg.Task))
	require.Equal(t, call.Deadline, pkg.Expire)
	require.Equal(t, call.Meta, pkg.Meta)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, []time.Duration{pkg.Soft, pkg.Hard})
	require.True(t, pkg.Alone, "nothing more is sent before the answer, so the worker may run it where it reads")
}

func TestACallThatEndsWithItsCallerSaysSo(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	read, gone := make(chan struct{}), make(chan struct{})
	p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if pkg.Meta[protocol.MetaCancel] != "1" || pkg.Alone {
			return c.refuse(pkg.ID, protocol.StatusIllegal, fmt.Sprintf("meta %v, alone %v", pkg.Meta, pkg.Alone))
		}
		c.tasks.Go(func() {
			_ = readUntilEOF(c) // the connection is closed when the caller's context ends
			close(gone)
		})
		close(read)
		<-gone
		return errHangUp
	})
	ctx, cancel := context.WithCancel(t.Context())
	call := syncCall("")
	call.Cancel = true
	done := make(chan *Failure, 1)
	go func() {
		_, f := p.client.Do(ctx, call)
		done <- f
	}()
	<-read
	cancel()
	f := <-done
	require.ErrorIs(t, f, context.Canceled)
	<-gone
}

func TestAConnectionCarriesManyCalls(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	w := p.worker(0, echo)
	for i := range 100 {
		reply, f := p.client.Do(t.Context(), syncCall(fmt.Sprint(i)))
		require.Nil(t, f)
		require.Equal(t, fmt.Sprint(i), textOf(reply))
	}
	require.EqualValues(t, 1, w.accepted.Load())
}

func TestALargeAnswerIsWhole(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	p.worker(0, echo)
	long := strings.Repeat("x", testLimit-100)
	reply, f := p.client.Do(t.Context(), syncCall(long))
	require.Nil(t, f)
	next, f := p.client.Do(t.Context(), syncCall("next"))
	require.Nil(t, f)
	require.Equal(t, "next", textOf(next))
	require.Equal(t, long, textOf(reply))
}

func TestAllWorkersAreFull(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 1)
	p.worker(0, silent)
	p.worker(1, silent)
	started := make(chan *Failure, 2)
	ctx, giveUp := context.WithCancel(t.Context())
	for range 2 {
		go func() {
			_, f := p.client.Do(ctx, syncCall(""))
			started <- f
		}()
	}
	waitFor(t, func() bool { _, ok := p.client.chooser.Pick(); return !ok })
	_, f := p.client.Do(t.Context(), syncCall(""))
	require.Equal(t, protocol.StatusBusy, f.Status)
	require.Equal(t, NotRun, f.Delivery)
	require.Equal(t, -1, f.Index)
	require.Contains(t, f.Message, "task process busy: of 2 workers 2 are full")
	giveUp()
	<-started
	<-started
}

func TestALossNamesTheWorkerAndHowItEnded(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	var row testRow
	read := make(chan struct{})
	w := p.worker(0, func(*fakeConn, protocol.Package) error { close(read); return errHangUp })
	row = w.row
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-read
		row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
	}()
	_, f := p.client.Do(t.Context(), syncCall(""))
	<-ended
	require.Equal(t, "worker 0 (pid 1001) was lost: killed by signal 9", f.Message)
	require.Equal(t, 1001, f.PID)
	require.Equal(t, 0, f.Index)
}

// celery #1628, #7924: a call whose W dies is reported once as MayHaveRun and never resent by us
func TestALostCallIsNotSentAgain_Row57(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2, 8)
	a, b := p.worker(0, hangUp), p.worker(1, hangUp)
	call := syncCall("")
	call.Wait = time.Second
	_, f := p.client.Do(t.Context(), call)
	require.Equal(t, protocol.StatusSockTimeout, f.Status)
	require.Equal(t, MayHaveRun, f.Delivery)
	require.EqualValues(t, 1, a.packages.Load()+b.packages.Load())
}

// apache/iggy PR #3429: duration zero means "disabled" in config but "fail now" in code: timeout 0,
// negative, huge
func TestDeadlinesOfAllSizes_Row53(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	p.worker(0, echo)
	for name, deadline := range map[string]int64{
		"none": 0, "negative": -1, "the clock's end": math.MaxInt64, "far": math.MaxInt64 - 1, "an hour": within(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			call := syncCall("")
			call.Deadline = deadline
			for _, wait := range []time.Duration{0, -1, math.MaxInt64} {
				call.Wait = wait
				_, f := p.client.Do(t.Context(), call)
				require.Nil(t, f, "%v", f)
			}
		})
	}
	t.Run("passed", func(t *testing.T) {
		call := syncCall("")
		call.Deadline = sys.Now() - 1
		_, f := p.client.Do(t.Context(), call)
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		require.Equal(t, NotRun, f.Delivery)
		require.ErrorIs(t, f, os.ErrDeadlineExceeded)
		require.NotErrorIs(t, f, context.DeadlineExceeded, "the caller's own context has not ended")
	})
}

func TestTheCallersContextCounts(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	read := make(chan struct{}, 1)
	p.worker(0, func(*fakeConn, protocol.Package) error { read <- struct{}{}; return nil })
	t.Run("its deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, f := p.client.Do(ctx, syncCall(""))
		require.ErrorIs(t, f, context.DeadlineExceeded)
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		require.Equal(t, MayHaveRun, f.Delivery)
		<-read
	})
	t.Run("its end", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-read
			cancel()
		}()
		call := syncCall("")
		call.Deadline = 0
		_, f := p.client.Do(ctx, call)
		require.ErrorIs(t, f, context.Canceled)
		require.Equal(t, MayHaveRun, f.Delivery)
	})
	t.Run("ended before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, f := p.client.Do(ctx, syncCall(""))
		require.ErrorIs(t, f, context.Canceled)
		require.Equal(t, NotRun, f.Delivery)
		require.Empty(t, read)
	})
}

// cpython PR #152978, #111498: Shutdown with calls open: they end with their answer or ErrClosed,
// no goroutine left
func TestCloseWithCallsOpen_Row61(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	release := make(chan struct{})
	w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
		if c.packages.Load() > 4 {
			return nil // never answered
		}
		c.tasks.Go(func() { <-release; _ = echo(c, pkg) })
		return nil
	})
	answered, cutOff := make(chan *Failure, 4), make(chan *Failure, 4)
	open := func(done chan *Failure, packages int64) {
		for range cap(done) {
			go func() {
				_, f := p.client.Do(context.Background(), &Call{Type: protocol.Sync, Task: "echo"})
				done <- f
			}()
		}
		waitFor(t, func() bool { return w.packages.Load() == packages })
	}
	open(answered, 4)
	open(cutOff, 8)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.client.Close(ctx) }()
	waitFor(t, p.client.calls.closed)
	_, f := p.client.Do(t.Context(), syncCall(""))
	require.ErrorIs(t, f, ErrClosed)
	require.Equal(t, protocol.StatusBusy, f.Status)
	require.Equal(t, NotRun, f.Delivery)
	close(release)
	for range cap(answered) {
		require.Nil(t, <-answered)
	}
	cancel()
	require.ErrorContains(t, <-done, "4 calls in flight were cut off")
	for range cap(cutOff) {
		f := <-cutOff
		require.ErrorIs(t, f, ErrClosed)
		require.Equal(t, protocol.StatusSockTimeout, f.Status)
		require.Equal(t, MayHaveRun, f.Delivery)
	}
	require.NoError(t, p.client.Close(t.Context()), "a second time there is nothing to do")
}

func TestCloseEndsCallsThatWaitForASlot(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1, 8)
	p.row(0, 1).SetAccepting(false)
	done := make(chan *Failure, 1)
	go func() {
		_, f := p.client.Do(context.Background(), &Call{Type: protocol.Sync, Task: "echo", Wait: time.Hour})
		done <- f
	}()
	waitFor(t, func() bool { return p.client.calls.inside() == 1 })
	require.NoError(t, p.client.Close(t.Context()))
	require.ErrorIs(t, <-done, ErrClosed)
}

func TestAConnectionWhoseIDsAreUsedUpIsReplaced(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{"own", "shared"} {
		t.Run(connection+" connection", func(t *testing.T) {
			p := newPool(t, 1, 64)
			var ids []uint64
			w := p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				ids = append(ids, pkg.ID)
				return echo(c, pkg)
			})
			if connection == "shared" {
				p.loadWorker()
			}
			for i := range 4 {
				_, f := p.client.Do(t.Context(), syncCall(""))
				require.Nil(t, f)
				if i > 0 {
					continue
				}
				if workerConns := &p.client.conns[0]; connection == "shared" {
					workerConns.shared.id += math.MaxUint32 - 2
				} else {
					workerConns.idle[0].id += math.MaxUint32 - 2
				}
			}
			require.EqualValues(t, 2, w.accepted.Load())
			require.EqualValues(t, math.MaxUint32, uint32(ids[1]))
			require.Equal(t, []uint32{1, 2}, []uint32{uint32(ids[2]), uint32(ids[3])})
			require.NotEqual(t, ids[1]>>32, ids[2]>>32)
		})
	}
}

func TestAGreetingOfAnotherIndexIsRefused(t *testing.T) {
	t.Parallel()
	for _, index := range []int{1, 99, -1} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			t.Parallel()
			p := newPool(t, 1, 1)
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.Index = index
				if err := c.write(protocol.AppendGreeting(nil, g)); err != nil {
					return err
				}
				_, err := io.Copy(io.Discard, c.conn)
				return err
			})
			call := syncCall("x")
			call.Deadline = within(500 * time.Millisecond)
			_, f := p.client.Do(t.Context(), call)
			require.NotNil(t, f)
			require.Equal(t, protocol.StatusSockTimeout, f.Status, f.Message)
			require.Equal(t, NotRun, f.Delivery, f.Message)
		})
	}
}
