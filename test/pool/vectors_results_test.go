package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestVectorsResults(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	on := func(test func(*testing.T, *pool)) func(*testing.T) {
		return func(t *testing.T) { test(t, p) }
	}
	value := func(r task.Runner, want any) func(*testing.T) {
		return func(t *testing.T) { testValue(t, p, r, want) }
	}
	status := func(r task.Runner, want task.Status) func(*testing.T) {
		return func(t *testing.T) {
			_, err := p.Sync(t.Context(), r)
			assert.ErrorIs(t, err, want)
		}
	}
	raw := func(frame []byte, want task.Status) func(*testing.T) {
		return func(t *testing.T) { assert.Equal(t, want, rawStatus(t, p, frame)) }
	}
	runNamed(t, readVectors(t).Results, map[string]func(t *testing.T){
		"sync_value":                     value(Echo{"ok"}, "ok"),
		"sync_negative_int":              value(Echo{-2}, int64(-2)),
		"sync_null":                      value(Echo{nil}, nil),
		"async_id":                       on(testAsyncID),
		"raise_then_handler_returns":     on(testRaiseThenHandlerReturns),
		"raise_then_handler_raises":      on(testRaiseThenHandlerRaises),
		"unserialisable_result":          status(Chan{}, task.ErrTask),
		"response_too_large":             status(Blob{Out: 3 << 20}, task.ErrResponseTooLarge),
		"request_too_large":              status(Blob{In: make([]byte, 3<<20)}, task.ErrPackageTooLarge),
		"not_a_package":                  raw([]byte{0, 0, 0, 1, 0xc0}, task.ErrIllegalPackage),
		"short_frame":                    raw([]byte{0, 0, 0, 9, 0xc0}, task.ErrProtocol),
		"class_not_registered":           testClassNotRegistered,
		"empty_registry":                 value(&Greet{Name: "you"}, "hello you"), // T and *T are one type
		"class_name_instead_of_instance": on(testClassNameInsteadOfInstance),
	})
}

// successAndFail returns by how much f raises the pool's counts.
func (p *pool) successAndFail(f func()) (success, fail uint64) {
	p.t.Helper()
	before := p.still()
	f()
	after := p.still()
	return after.Success - before.Success, after.Fail - before.Fail
}

func testValue(t *testing.T, p *pool, r task.Runner, want any) {
	success, fail := p.successAndFail(func() {
		r, err := p.Sync(t.Context(), r)
		require.NoError(t, err)
		got, err := r.Value()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	})
	assert.EqualValues(t, 1, success)
	assert.Zero(t, fail)
}

func testAsyncID(t *testing.T, p *pool) {
	m := testsync.NewRendezvous(t)
	id, err := p.Async(t.Context(), Hold{Addr: m.Addr})
	require.NoError(t, err)
	assert.Positive(t, id)
	g := m.Next()
	assert.Equal(t, id, g.TaskID)
	id2, err := p.Async(t.Context(), Echo{1})
	require.NoError(t, err)
	assert.Greater(t, id2, id)
	g.Release("")
}

func testRaiseThenHandlerReturns(t *testing.T, p *pool) {
	success, fail := p.successAndFail(func() {
		s, err := task.As[string](p.Sync(t.Context(), Fail{Text: "x1", Handler: "returns"}))
		require.NoError(t, err)
		assert.Equal(t, "fallback", s)
	})
	assert.Zero(t, success)
	assert.EqualValues(t, 1, fail)
	assert.NotContains(t, p.log.String(), "x1", "the pool's OnException is not called")
}

func testRaiseThenHandlerRaises(t *testing.T, p *pool) {
	var id uint64
	success, fail := p.successAndFail(func() {
		_, err := p.Sync(t.Context(), Fail{Text: "x2", Handler: "fails"})
		e := callError(t, err)
		assert.Equal(t, task.ErrTask, e.Status)
		assert.Equal(t, task.Ran, e.Delivery)
		assert.Contains(t, e.Message, errHandler.Error())
		id = e.TaskID
	})
	assert.Zero(t, success)
	assert.EqualValues(t, 1, fail)
	p.logged("OnException worker=0 status=-5 delivery=ran task="+jsonInt(int(id)), 1)
}

func testClassNotRegistered(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1, Tasks: []task.Runner{Echo{}}})
	path := filepath.Join(p.dir, "mark")
	_, err := p.Sync(t.Context(), Mark{Path: path})
	e := callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	assert.NoFileExists(t, path)
	_, err = p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}

func testClassNameInsteadOfInstance(t *testing.T, p *pool) {
	// The compiler refuses a name; what is left is a nil instance.
	_, err := p.Sync(t.Context(), nil)
	e := callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
}

func TestVectorsLifecycle(t *testing.T) {
	parallel(t)
	runNamed(t, readVectors(t).Lifecycle, map[string]func(t *testing.T){
		"start_order":            testStartOrder,
		"onWorkerStart_raises":   testOnWorkerStartRaises,
		"term_idle":              testTermIdle,
		"term_busy":              testTermBusy,
		"term_with_endless_task": testTermWithEndlessTask,
	})
}

// OnWorkerStart runs once, finds its row set, and no caller can connect before it ends.
func testStartOrder(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2, ServerName: onStart(t, "report")})
	p.logged("OnWorkerStart index=0", 1)
	p.logged("OnWorkerStart index=1", 1)
}

func testOnWorkerStartRaises(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 2, ServerName: onStart(t, "fail")})
	err := p.Start(t.Context())
	require.Error(t, err)
	assert.Contains(t, err.Error(), "no database today")
}

func testTermIdle(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	pid := p.Status()[0].PID
	require.NoError(t, p.Shutdown(t.Context()))
	assert.NoFileExists(t, filepath.Join(p.dir, "p.TaskWorker.0.sock"))
	assert.NoDirExists(t, "/proc/"+jsonInt(pid))
	_, err := p.Sync(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrClosed)
}

func testTermBusy(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			s, _ := task.As[string](p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit)))
			answers <- s
		}()
	}
	held := []*testsync.Held{m.Next(), m.Next()}
	done := make(chan error, 1)
	go func() { done <- p.Shutdown(context.Background()) }()
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "p.TaskWorker.0.sock"))
		return errors.Is(err, os.ErrNotExist)
	}, func() string { return "the socket file is still there" })
	_, err := p.Sync(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrProcessBusy)
	for _, g := range held {
		g.Release("finished")
	}
	assert.Equal(t, "finished", <-answers)
	assert.Equal(t, "finished", <-answers)
	assert.NoError(t, <-done)
}

func testTermWithEndlessTask(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 300 * time.Millisecond})
	m := testsync.NewRendezvous(t)
	id, err := p.Async(t.Context(), Stuck{m.Addr})
	require.NoError(t, err)
	m.Next()
	err = p.Shutdown(t.Context())
	require.Error(t, err)
	assert.Contains(t, err.Error(), jsonInt(int(id)), "the lost task is named")
}

func TestVectorsStatusFields(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1})
	require.NoError(t, err)
	s := p.Status()
	require.Len(t, s, 1)
	for _, field := range readVectors(t).Fields {
		var exported []string
		for i := range reflect.TypeOf(s[0]).NumField() {
			exported = append(exported, reflect.TypeOf(s[0]).Field(i).Name)
		}
		want := map[string]string{
			"accepting": "Accepting", "running": "Running", "success": "Success",
			"fail": "Fail", "pid": "PID", "startUpTime": "StartUpTime",
		}[field]
		assert.True(t, slices.Contains(exported, want), "field %s", field)
	}
	assert.True(t, s[0].Accepting)
	assert.EqualValues(t, 1, s[0].Success)
	assert.Positive(t, s[0].PID)
	assert.WithinDuration(t, time.Now(), s[0].StartUpTime, time.Minute)
}
