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
	"github.com/taskd-go/task/internal/testkit"
)

func TestVectorsResults(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 1})
	counts := func(t *testing.T, f func()) (success, fail uint64) {
		t.Helper()
		before := p.still()
		f()
		after := p.still()
		return after.Success - before.Success, after.Fail - before.Fail
	}
	value := func(r task.Runner, want any) func(t *testing.T) {
		return func(t *testing.T) {
			success, fail := counts(t, func() {
				r, err := p.Sync(t.Context(), r)
				require.NoError(t, err)
				got, err := r.Value()
				require.NoError(t, err)
				assert.Equal(t, want, got)
			})
			assert.EqualValues(t, 1, success)
			assert.Zero(t, fail)
		}
	}
	status := func(r task.Runner, want task.Status) func(t *testing.T) {
		return func(t *testing.T) {
			_, err := p.Sync(t.Context(), r)
			assert.ErrorIs(t, err, want)
		}
	}
	runNamed(t, readVectors(t).Results, map[string]func(t *testing.T){
		"sync_value":        value(Echo{"ok"}, "ok"),
		"sync_negative_int": value(Echo{-2}, int64(-2)),
		"sync_null":         value(Echo{nil}, nil),
		"async_id": func(t *testing.T) {
			m := testkit.NewMeeting(t)
			id, err := p.Async(t.Context(), Meet{Addr: m.Addr})
			require.NoError(t, err)
			assert.Positive(t, id)
			g := m.Next()
			assert.Equal(t, id, g.TaskID)
			id2, err := p.Async(t.Context(), Echo{1})
			require.NoError(t, err)
			assert.Greater(t, id2, id)
			g.Leave("")
		},
		"raise_then_handler_returns": func(t *testing.T) {
			success, fail := counts(t, func() {
				s, err := task.As[string](p.Sync(t.Context(), Fail{Text: "x1", Handler: "returns"}))
				require.NoError(t, err)
				assert.Equal(t, "fallback", s)
			})
			assert.Zero(t, success)
			assert.EqualValues(t, 1, fail)
			assert.NotContains(t, p.log.String(), "x1", "the pool's OnException is not called")
		},
		"raise_then_handler_raises": func(t *testing.T) {
			var id uint64
			success, fail := counts(t, func() {
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
		},
		"unserialisable_result": status(Chan{}, task.ErrTask),
		"response_too_large":    status(Blob{Out: 3 << 20}, task.ErrResponseTooLarge),
		"request_too_large":     status(Blob{In: make([]byte, 3<<20)}, task.ErrPackageTooLarge),
		"not_a_package": func(t *testing.T) {
			assert.Equal(t, task.ErrIllegalPackage, rawStatus(t, p, []byte{0, 0, 0, 1, 0xc0}))
		},
		"short_frame": func(t *testing.T) {
			assert.Equal(t, task.ErrProtocol, rawStatus(t, p, []byte{0, 0, 0, 9, 0xc0}))
		},
		"class_not_registered": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1, Tasks: []task.Runner{Echo{}}})
			path := filepath.Join(p.dir, "mark")
			_, err := p.Sync(t.Context(), Mark{path})
			e := callError(t, err)
			assert.Equal(t, task.ErrIllegalPackage, e.Status)
			assert.Equal(t, task.NotRun, e.Delivery)
			assert.NoFileExists(t, path)
			_, err = p.Sync(t.Context(), Echo{1})
			assert.NoError(t, err)
		},
		"empty_registry": value(Greet2(), "hello you"),
		"class_name_instead_of_instance": func(t *testing.T) {
			// The compiler refuses a name; what is left is a nil instance.
			_, err := p.Sync(t.Context(), nil)
			e := callError(t, err)
			assert.Equal(t, task.ErrIllegalPackage, e.Status)
			assert.Equal(t, task.NotRun, e.Delivery)
		},
	})
}

// Greet2 is a Greet as a pointer: T and *T are one type.
func Greet2() task.Runner { return &Greet{Name: "you"} }

func TestVectorsLifecycle(t *testing.T) {
	runNamed(t, readVectors(t).Lifecycle, map[string]func(t *testing.T){
		"start_order": func(t *testing.T) {
			// OnWorkerStart runs once, finds its row set, and nobody can connect before it ends.
			t.Setenv("TEST_ON_WORKER_START", "report")
			p := startPool(t, task.Config{WorkerNum: 2})
			p.logged("OnWorkerStart index=0", 1)
			p.logged("OnWorkerStart index=1", 1)
		},
		"onWorkerStart_raises": func(t *testing.T) {
			t.Setenv("TEST_ON_WORKER_START", "fail")
			p := newPool(t, task.Config{WorkerNum: 2})
			err := p.Start(t.Context())
			require.Error(t, err)
			assert.Contains(t, err.Error(), "no database today")
		},
		"term_idle": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1})
			pid := p.Status()[0].PID
			require.NoError(t, p.Shutdown(t.Context()))
			assert.NoFileExists(t, filepath.Join(p.dir, "p.TaskWorker.0.sock"))
			assert.NoDirExists(t, "/proc/"+jsonInt(pid))
			_, err := p.Sync(t.Context(), Echo{1})
			assert.ErrorIs(t, err, task.ErrClosed)
		},
		"term_busy": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1})
			m := testkit.NewMeeting(t)
			answers := make(chan string, 2)
			for range 2 {
				go func() {
					s, _ := task.As[string](p.Sync(context.Background(), Meet{Addr: m.Addr}, task.WithTimeout(patience)))
					answers <- s
				}()
			}
			guests := []*testkit.Guest{m.Next(), m.Next()}
			done := make(chan error, 1)
			go func() { done <- p.Shutdown(context.Background()) }()
			eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(p.dir, "p.TaskWorker.0.sock"))
				return errors.Is(err, os.ErrNotExist)
			}, func() string { return "the socket file is still there" })
			_, err := p.Sync(t.Context(), Echo{1})
			assert.ErrorIs(t, err, task.ErrProcessBusy)
			for _, g := range guests {
				g.Leave("finished")
			}
			assert.Equal(t, "finished", <-answers)
			assert.Equal(t, "finished", <-answers)
			assert.NoError(t, <-done)
		},
		"term_with_endless_task": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 300 * time.Millisecond})
			m := testkit.NewMeeting(t)
			id, err := p.Async(t.Context(), Deaf{m.Addr})
			require.NoError(t, err)
			m.Next()
			err = p.Shutdown(t.Context())
			require.Error(t, err)
			assert.Contains(t, err.Error(), jsonInt(int(id)), "the lost task is named")
		},
	})
}

func TestVectorsStatusFields(t *testing.T) {
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
