package pool_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestVectorsAdmission(t *testing.T) {
	parallel(t)
	runNamed(t, readVectors(t).Admission, map[string]func(t *testing.T){
		"over_limit_race":             testOverLimitRace,
		"limit_boundary":              testLimitBoundary,
		"slot_released_after_failure": testSlotReleasedAfterFailure,
	})
}

func testOverLimitRace(t *testing.T) {
	parallel(t)
	// Two processes choose the only worker at the same moment: neither sees
	// the other's call in the table, so that the worker itself must decide.
	p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 1})
	m := testsync.NewRendezvous(t)
	callers := []task.Caller{p.Task, dial(t, p), dial(t, p)}
	const rounds = 20
	for range rounds {
		var wg sync.WaitGroup
		results := make(chan error, len(callers))
		start := make(chan struct{})
		for _, c := range callers {
			wg.Go(func() {
				<-start
				_, err := c.Async(t.Context(), Hold{Addr: m.Addr})
				results <- err
			})
		}
		close(start)
		wg.Wait()
		close(results)
		accepted := 0
		for err := range results {
			if err == nil {
				accepted++
				continue
			}
			e := callError(t, err)
			assert.Equal(t, task.ErrProcessBusy, e.Status)
			assert.Equal(t, task.NotRun, e.Delivery)
		}
		assert.Equal(t, 1, accepted)
		assert.LessOrEqual(t, p.Status()[0].Running, 1)
		m.Next().Release("")
		p.still()
	}
	assert.EqualValues(t, rounds, p.still().Success)
}

func testLimitBoundary(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 2})
	m := testsync.NewRendezvous(t)
	for range 2 {
		_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
		require.NoError(t, err)
	}
	_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
	assert.ErrorIs(t, err, task.ErrProcessBusy)
	assert.Equal(t, 2, p.Status()[0].Running)
	m.Next().Release("")
	m.Next().Release("")
}

func testSlotReleasedAfterFailure(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 1})
	_, err := p.Sync(t.Context(), Fail{Text: "raises"})
	require.ErrorIs(t, err, task.ErrTask)
	_, err = p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}

func TestVectorsTimeouts(t *testing.T) {
	parallel(t)
	budget := func(want time.Duration, way callWay, opts ...task.CallOption) func(*testing.T) {
		return func(t *testing.T) {
			parallel(t)
			checkBudget(t, want, way, opts...)
		}
	}
	runNamed(t, readVectors(t).Timeouts, map[string]func(t *testing.T){
		"async_default":         budget(5*time.Second, viaAsync),
		"sync_default":          budget(3*time.Second, viaSync),
		"zero":                  budget(0, viaSync, task.WithTimeout(0)),
		"negative":              budget(0, viaAsync, task.WithTimeout(-1)),
		"nan":                   testNoSuchDuration,
		"inf":                   testNoSuchDuration,
		"minus_inf":             testNoSuchDuration,
		"shared_budget":         testSharedBudget,
		"expired_before_start":  testExpiredBeforeStart,
		"expired_while_running": testExpiredWhileRunning,
		"no_listener":           testNoListener,
	})
}

// A way to call a pool.
type callWay bool

const (
	viaSync  callWay = false
	viaAsync callWay = true
)

// checkBudget checks the deadline that a task sees in a call: want after the call's beginning, or none
// where want is 0. The time that encoding takes is part of it.
func checkBudget(t *testing.T, want time.Duration, way callWay, opts ...task.CallOption) {
	t.Helper()
	p := startPool(t, task.Config{WorkerNum: 1})
	path := filepath.Join(p.dir, "deadline")
	r := DeadlineTo{Path: path, Encoding: SlowText{200 * time.Millisecond}}
	start := time.Now()
	var err error
	if way == viaAsync {
		_, err = p.Async(context.Background(), r, opts...)
	} else {
		_, err = p.Sync(context.Background(), r, opts...)
	}
	require.NoError(t, err)
	var at time.Time
	eventually(t, func() bool {
		b, err := os.ReadFile(path)
		return err == nil && len(b) > 0 && at.UnmarshalText(b) == nil
	}, func() string { return "no deadline was written" })
	if want == 0 {
		assert.Zero(t, at)
		return
	}
	assert.InDelta(t, want.Seconds(), at.Sub(start).Seconds(), 0.9, "the budget")
}

// A time.Duration is neither NaN nor infinite; taskd's flags refuse such floats.
func testNoSuchDuration(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		assert.False(t, f == float64(time.Duration(0)))
	}
}

// Encoding takes longer than the whole budget: nothing is left for the rest of the delivery.
func testSharedBudget(t *testing.T) {
	parallel(t)
	checkBudget(t, 2*time.Second, viaSync, task.WithTimeout(2*time.Second))
	p := startPool(t, task.Config{WorkerNum: 1})
	path := filepath.Join(p.dir, "mark")
	r := Mark{Path: path, Encoding: SlowText{300 * time.Millisecond}}
	_, err := p.Sync(context.Background(), r, task.WithTimeout(200*time.Millisecond))
	e := callError(t, err)
	assert.Equal(t, task.ErrSockTimeout, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	assert.Zero(t, p.still().Success)
	assert.NoFileExists(t, path)
	start := time.Now()
	_, err = p.Sync(context.Background(), Slow{Encoding: SlowText{200 * time.Millisecond}, For: 3 * time.Second}, task.WithTimeout(briefly))
	assert.ErrorIs(t, err, task.ErrSockTimeout)
	assert.Less(t, time.Since(start), soon, "what is left of the budget bounds the wait for the answer")
}

func testExpiredBeforeStart(t *testing.T) {
	parallel(t)
	// The worker is stopped and reads after the deadline.
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	path := filepath.Join(p.dir, "mark")
	resume := stop(t, p.Status()[0].PID)
	_, err = p.Sync(t.Context(), Mark{Path: path}, task.WithTimeout(briefly))
	assert.ErrorIs(t, err, task.ErrSockTimeout)
	resume()
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Expired == 1 })
	sum := p.still()
	assert.EqualValues(t, 1, sum.Fail)
	assert.NoFileExists(t, path)
}

func testExpiredWhileRunning(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	failed := make(chan error, 1)
	go func() {
		_, err := p.Sync(context.Background(), Hold{Addr: m.Addr, Ctx: true}, task.WithTimeout(briefly))
		failed <- err
	}()
	g := m.Next()
	e := callError(t, <-failed)
	assert.Equal(t, task.ErrSockTimeout, e.Status)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	g.Release("done")
	assert.EqualValues(t, 1, p.still().Success, "a task that has begun is not cut")
}

func testNoListener(t *testing.T) {
	parallel(t)
	// A caller that chose the worker before its socket was missed gets -7. Then
	// the worker is no longer chosen, and before long the path is back.
	p := startPool(t, task.Config{WorkerNum: 1})
	require.NoError(t, os.Remove(filepath.Join(p.dir, "p.TaskWorker.0.sock")))
	_, err := dial(t, p).Sync(t.Context(), Echo{1}, task.WithTimeout(500*time.Millisecond))
	if err != nil {
		e := callError(t, err)
		assert.Contains(t, []task.Status{task.ErrSockTimeout, task.ErrProcessBusy}, e.Status)
		assert.Equal(t, task.NotRun, e.Delivery)
	}
}
