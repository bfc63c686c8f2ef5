package tasktest_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/tasktest"
)

const waitLimit = time.Minute

func callError(t *testing.T, err error) *task.Error {
	t.Helper()
	var e *task.Error
	require.True(t, errors.As(err, &e), "got %T: %v", err, err)
	return e
}

func TestDeaths(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    tasktest.Fault
		delivery task.Delivery
		ran      bool
		lost     bool
	}{
		{"before accepting", tasktest.DieBeforeAccepting, task.NotRun, false, false},
		{"after accepting", tasktest.DieAfterAccepting, task.MayHaveRun, false, true},
		{"in the answer", tasktest.DieInAnswer, task.MayHaveRun, true, false},
	} {
		for _, caller := range []string{"sync", "async", "many"} {
			t.Run(c.name+" "+caller, func(t *testing.T) {
				p := tasktest.New(t, task.Config{WorkerNum: 1})
				runs.Store(0)
				_, err := p.Sync(t.Context(), Echo{"warm"})
				require.NoError(t, err)
				p.Fail(c.fault, "test.count")
				_, err = p.Sync(t.Context(), Echo{"not meant"})
				require.NoError(t, err)

				err = call(t, p, caller, Count{})
				e := callError(t, err)
				assert.Equal(t, task.ErrSockTimeout, e.Status)
				assert.Equal(t, c.delivery, e.Delivery)
				assert.Contains(t, e.Message, "was lost: killed (signal 9")

				v, err := task.As[string](p.Sync(t.Context(), Echo{"after"}, task.WithWait(waitLimit)))
				require.NoError(t, err)
				assert.Equal(t, "after", v)
				s := still(t, p)
				assert.Equal(t, c.ran && caller != "async", runs.Load() == 1)
				assert.Equal(t, c.lost || c.fault == tasktest.DieInAnswer && caller == "async", s.Lost == 1)
				assert.EqualValues(t, 1, p.Status()[0].Restarts)
			})
		}
	}
}

// call makes one call of a kind and returns its error.
func call(t *testing.T, c task.Caller, kind string, r task.Runner) error {
	switch kind {
	case "sync":
		_, err := c.Sync(t.Context(), r)
		return err
	case "async":
		_, err := c.Async(t.Context(), r)
		return err
	default:
		return c.SyncMany(t.Context(), []task.Runner{r})[0].Err
	}
}

// A death ends the neighbours' calls too, and their tasks count as lost though they go on.
func TestADeathTakesItsNeighboursAlong(t *testing.T) {
	p := tasktest.New(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	neighbour := make(chan error, 1)
	go func() {
		_, err := p.Sync(context.Background(), Meet{Addr: m.Addr, Ctx: true}, task.WithTimeout(waitLimit))
		neighbour <- err
	}()
	g := m.Next()
	p.Fail(tasktest.DieAfterAccepting, "")
	callError(t, call(t, p, "sync", Count{}))
	e := callError(t, <-neighbour)
	assert.Equal(t, task.ErrSockTimeout, e.Status)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	g.Closed(t) // its context ended
	_, err := p.Sync(t.Context(), Echo{1}, task.WithWait(waitLimit))
	require.NoError(t, err)
	s := still(t, p)
	assert.EqualValues(t, 2, s.Lost)
	assert.EqualValues(t, 1, s.Success)
	assert.Zero(t, s.Fail)
}

func TestStartsThatFail(t *testing.T) {
	t.Run("at the pool's start", func(t *testing.T) {
		_, err := tasktest.Start(
			task.Config{WorkerNum: 2, ServerName: "p", OnWorkerStart: func(_ context.Context, w task.Worker) error {
				if w.Index == 1 {
					return errors.New("no database today")
				}
				return nil
			}},
		)
		require.ErrorContains(t, err, "task: pool p did not start: worker 1 (pid ")
		require.ErrorContains(t, err, ") did not start: boot failed (exit status 1): OnWorkerStart: no database today")
	})
	t.Run("with a panic", func(t *testing.T) {
		_, err := tasktest.Start(
			task.Config{OnWorkerStart: func(context.Context, task.Worker) error { panic("no luck") }},
		)
		require.ErrorContains(t, err, "OnWorkerStart panicked: no luck\n")
	})
	t.Run("a bad configuration", func(t *testing.T) {
		_, err := tasktest.Start(task.Config{WorkerNum: 1000})
		var bad *task.ConfigError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, "WorkerNum", bad.Field)
	})
	t.Run("of a successor", func(t *testing.T) {
		failed := make(chan task.Event, 10)
		p := tasktest.New(t, task.Config{WorkerNum: 1, OnEvent: func(e task.Event) {
			if e.Reason == "boot_failed" {
				failed <- e
			}
		}})
		p.FailStarts(2)
		p.Fail(tasktest.DieBeforeAccepting, "")
		callError(t, call(t, p, "sync", Count{}))
		for range 2 {
			assert.Contains(t, (<-failed).Text, "OnWorkerStart: ")
		}
		_, err := p.Sync(t.Context(), Echo{1}, task.WithTimeout(waitLimit), task.WithWait(waitLimit))
		require.NoError(t, err)
		assert.EqualValues(t, 3, p.Status()[0].Restarts)
	})
}

func TestHardLimitReplacesTheWorker(t *testing.T) {
	p := tasktest.New(
		t,
		task.Config{WorkerNum: 1, TimeLimit: 50 * time.Millisecond, DrainTimeout: 100 * time.Millisecond},
	)
	release := make(chan struct{})
	deaf.Store(&release)
	defer close(release)
	err := call(t, p, "sync", Deaf{})
	e := callError(t, err)
	assert.Equal(t, task.ErrTask, e.Status)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	assert.Contains(t, e.Message, "time limit")
	_, err = p.Sync(t.Context(), Echo{1}, task.WithWait(waitLimit))
	require.NoError(t, err)
	assert.EqualValues(t, 1, still(t, p).Lost)
}

func TestRecycling(t *testing.T) {
	p := tasktest.New(t, task.Config{WorkerNum: 2, MaxTasksPerWorker: 10, MaxWorkerAge: 50 * time.Millisecond})
	for end := time.Now().Add(waitLimit); p.Status()[0].Generation < 6 || p.Status()[1].Generation < 6; {
		require.True(t, time.Now().Before(end), "%+v", p.Status())
		_, err := p.Sync(t.Context(), Echo{1})
		require.NoError(t, err)
	}
	assert.Zero(t, still(t, p).Lost)
}

func TestShutdownListsWhatItLoses(t *testing.T) {
	p, err := tasktest.Start(task.Config{WorkerNum: 1})
	require.NoError(t, err)
	release := make(chan struct{})
	deaf.Store(&release)
	defer close(release)
	_, err = p.Async(t.Context(), Deaf{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = p.Shutdown(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "test.deaf (task 1, worker 0, pid ")
	_, err = p.Sync(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrClosed)
	assert.EqualValues(t, 1, p.Status()[0].Lost)
}

// Another client of the program reaches the pool by its name.
func TestDial(t *testing.T) {
	p := tasktest.New(t, task.Config{})
	c, err := task.Dial(t.Context(), p.Config())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
}

// On a connection that many calls share, the one that was not read is NotRun, and only that.
func TestADeathOnASharedConnection(t *testing.T) {
	p := tasktest.New(t, task.Config{WorkerNum: 1, MaxRunningNum: 64})
	m := testsync.NewRendezvous(t)
	const n = 20
	others := make(chan error, n)
	var held []*testsync.Held
	for range n {
		go func() {
			_, err := p.Sync(context.Background(), Meet{Addr: m.Addr, Ctx: true}, task.WithTimeout(waitLimit))
			others <- err
		}()
		held = append(held, m.Next())
	}
	p.Fail(tasktest.DieBeforeAccepting, "test.count")
	e := callError(t, call(t, p, "sync", Count{}))
	assert.Equal(t, task.NotRun, e.Delivery)
	for range held {
		assert.Equal(t, task.MayHaveRun, callError(t, <-others).Delivery)
	}
	assert.EqualValues(t, n, still(t, p).Lost)
}

func TestNothingIsLeft(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	p, err := tasktest.Start(task.Config{WorkerNum: 3})
	require.NoError(t, err)
	for _, f := range []tasktest.Fault{tasktest.DieBeforeAccepting, tasktest.DieAfterAccepting, tasktest.DieInAnswer} {
		p.Fail(f, "")
		require.Error(t, call(t, p, "sync", Count{}))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, p.Shutdown(t.Context()), "any number of times")
	assert.NoDirExists(t, p.Config().TempDir)
	for end := time.Now().Add(waitLimit); runtime.NumGoroutine() > goroutines || openFiles() > files; time.Sleep(time.Millisecond) {
		require.True(
			t,
			time.Now().Before(end),
			"%d goroutines, %d before; %d files, %d before",
			runtime.NumGoroutine(),
			goroutines,
			openFiles(),
			files,
		)
	}
}

// openFiles is 0 where the system does not tell.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
