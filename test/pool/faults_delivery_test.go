package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// A late answer is given to the next caller, and so on without end.
func TestNoAnswerReachesAnotherCaller_Row50(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	t.Run("the call after one that was given up", func(t *testing.T) {
		m := testsync.NewRendezvous(t)
		for i := range 20 {
			ctx, giveUp := context.WithCancel(t.Context())
			given := make(chan error, 1)
			go func() {
				_, err := p.Sync(ctx, Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
				given <- err
			}()
			g := m.Next()
			giveUp()
			require.ErrorIs(t, <-given, task.ErrSockTimeout)
			for _, answers := range []func(){func() {}, func() { g.Release("too late") }} {
				answers()
				n, err := task.As[int](p.Sync(t.Context(), Echo{i}))
				require.NoError(t, err)
				assert.Equal(t, i, n)
			}
		}
	})
	t.Run("10,000 mixed calls", func(t *testing.T) {
		const callers, each = 40, 250
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					mixedCall(t, p, c*each+i)
				}
			})
		}
		wg.Wait()
		sum := p.still()
		assert.Zero(t, sum.Lost)
		assert.Zero(t, sum.Restarts)
	})
}

// mixedCall calls in one of several ways, with a time-out that an answer may or
// may not meet, and checks that an answer is its own.
func mixedCall(t *testing.T, p *pool, value int) {
	opts := []task.CallOption{task.WithTimeout(waitLimit)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch rand.IntN(6) {
	case 0, 1:
		opts = []task.CallOption{task.WithTimeout(rand.N(2 * time.Millisecond))}
	case 2:
		opts = append(opts, task.WithCancel())
		defer time.AfterFunc(rand.N(2*time.Millisecond), cancel).Stop()
	case 3:
		for i, o := range p.SyncMany(ctx, []task.Runner{Echo{value}, Echo{-value}}, opts...) {
			n, err := task.As[int](o.Result, o.Err)
			assert.NoError(t, err)
			assert.Equal(t, value*(1-2*i), n)
		}
		return
	}
	n, err := task.As[int](p.Sync(ctx, Echo{value}, opts...))
	if err == nil {
		assert.Equal(t, value, n)
		return
	}
	e := callError(t, err)
	assert.Contains(t, []task.Status{task.ErrSockTimeout, task.ErrPackageExpire}, e.Status, e.Error())
}

// A step of the wall clock makes every worker "timed out". Deadlines here are
// instants of a clock that cannot be set; the wall clock's time means nothing to it.
func TestDeadlinesIgnoreTheWallClock_Row52(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	var mono unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono))
	now := mono.Nano()
	for name, c := range map[string]struct {
		expire int64
		want   task.Status
	}{
		"none":                      {0, 0},
		"in a minute":               {now + int64(time.Minute), 0},
		"just past":                 {now - 1, task.ErrPackageExpire},
		"an hour past":              {max(1, now-int64(time.Hour)), task.ErrPackageExpire},
		"an hour past, by the wall": {time.Now().Add(-time.Hour).UnixNano(), 0},
	} {
		body, err := msgpack.Marshal([]any{1, 2, uint64(1), c.expire, "github.com/taskd-go/task/test/pool_test.Echo", map[string]any{"Value": 1}})
		require.NoError(t, err)
		assert.Equal(t, c.want, rawStatus(t, p, frameOfBody(body)), name)
	}
}

// A panic outside a task's own goroutine ends the worker; the caller learns why.
func TestPanicOfAGoroutineIsNamed(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Stray{"not recovered"}, task.WithTimeout(waitLimit))
	e := callError(t, err)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	assert.Contains(t, e.Message, "crashed (exit status 2)")
	exit := p.exited(e.PID)
	assert.Contains(t, exit.Stderr, "panic: not recovered")
	require.Len(t, exit.Tasks, 1)
	assert.Contains(t, fmt.Sprint(exit.Tasks), "Stray")
}
