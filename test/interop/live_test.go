package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

const serverName = "interop"

func TestMain(m *testing.M) {
	task.RegisterName("echo", echo{})
	task.RegisterName("hold", hold{})
	task.RegisterName("fill", fill{})
	task.RegisterName("fail", fail{})
	task.RegisterName("open", open{})
	task.RegisterName("gate", gate{})
	task.RunIfWorker(task.Config{ServerName: serverName})
	os.Exit(m.Run())
}

// echo returns its argument and the meta key "k" behind it.
type echo struct{ Value any }

func (e echo) Run(_ context.Context, info task.Info) (any, error) {
	if k := info.Meta["k"]; k != "" {
		return []any{e.Value, k, len(info.Meta)}, nil
	}
	return e.Value, nil
}

// hold runs until its context or its worker ends.
type hold struct{}

func (hold) Run(ctx context.Context, _ task.Info) (any, error) {
	select {
	case <-task.Draining(ctx):
		return "drained", nil
	case <-ctx.Done():
		return "cancelled", nil
	}
}

// fill returns a string of N bytes.
type fill struct{ N int }

func (f fill) Run(context.Context, task.Info) (any, error) { return strings.Repeat("x", f.N), nil }

type fail struct{}

func (fail) Run(context.Context, task.Info) (any, error) { return nil, fmt.Errorf("it broke") }

// gate waits in the worker's process until open runs there.
type gate struct{}

var opened = make(chan struct{})

func (gate) Run(context.Context, task.Info) (any, error) {
	<-opened
	return "through", nil
}

type open struct{}

func (open) Run(context.Context, task.Info) (any, error) {
	opened <- struct{}{}
	return "opened", nil
}

// startPool starts a pool of one worker and returns the worker's socket.
func startPool(t *testing.T, cfg task.Config) (pool *task.Task, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "interop")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg.ServerName, cfg.TempDir, cfg.WorkerNum = serverName, dir, 1
	pool, err = task.New(cfg)
	require.NoError(t, err)
	require.NoError(t, pool.Start(context.Background()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		assert.NoError(t, pool.Shutdown(ctx))
	})
	return pool, filepath.Join(dir, serverName+".TaskWorker.0.sock")
}

func TestAForeignClientIsServed(t *testing.T) {
	pool, socket := startPool(t, task.Config{MaxRunningNum: 2, MaxPackageSize: 4096})

	t.Run("greeting", func(t *testing.T) {
		f := dial(t, socket)
		assert.EqualValues(t, pool.Status()[0].PID, f.pid)
		assert.EqualValues(t, 4096, f.max)
	})
	t.Run("sync", func(t *testing.T) {
		f := dial(t, socket)
		for i, v := range []any{"text", int64(-2), nil, true, 1.5, map[string]any{"a": "b"}} {
			f.call(uint64(i+1), "echo", map[string]any{"Value": v})
			got := f.receive()
			assert.Positive(t, got.TaskID)
			assert.Equal(t, answer{ID: int64(i + 1), OK: true, Data: v, TaskID: got.TaskID}, got)
		}
	})
	t.Run("async", func(t *testing.T) {
		f := dial(t, socket)
		f.send(1, 1, 1, monotonic(t)+int64(waitLimit), "echo", map[string]any{"Value": "dropped"})
		got := f.receive()
		assert.Positive(t, got.TaskID)
		assert.Equal(t, answer{ID: 1, OK: true, TaskID: got.TaskID}, got)
	})
	t.Run("alone, with meta and limits", func(t *testing.T) {
		f := dial(t, socket)
		meta := map[string]string{"k": "v", "taskd.cancel": "1"}
		f.send(1, 2+4, 1, monotonic(t)+int64(waitLimit), "echo", map[string]any{"Value": "x"}, meta, []int64{0, int64(waitLimit)})
		assert.Equal(t, []any{"x", "v", int64(1)}, f.receive().Data)
	})
	t.Run("several at once, answered in any order", func(t *testing.T) {
		f := dial(t, socket)
		f.call(1, "gate", nil)
		f.call(7, "open", nil)
		got := map[int64]any{}
		for range 2 {
			a := f.receive()
			assert.True(t, a.OK)
			got[a.ID] = a.Data
		}
		assert.Equal(t, map[int64]any{1: "through", 7: "opened"}, got)
	})
	t.Run("a task that blocks holds up no other", func(t *testing.T) {
		f := dial(t, socket)
		f.call(1, "gate", nil)
		f.call(2, "echo", map[string]any{"Value": "quick"})
		assert.Equal(t, int64(2), f.receive().ID)
		f.call(3, "open", nil)
		f.receive()
		f.receive()
	})
	t.Run("a failure: -5", func(t *testing.T) {
		f := dial(t, socket)
		f.call(1, "fail", nil)
		got := f.receive()
		assert.False(t, got.OK)
		assert.EqualValues(t, -5, got.Status)
		assert.Contains(t, got.Data, "it broke")
		assert.Positive(t, got.TaskID)
	})
	t.Run("a response over the limit: -9, and the connection serves on", func(t *testing.T) {
		f := dial(t, socket)
		f.call(1, "fill", map[string]any{"N": 5000})
		assert.EqualValues(t, -9, f.receive().Status)
		f.call(2, "fill", map[string]any{"N": 3})
		assert.Equal(t, "xxx", f.receive().Data)
	})
}

func TestAForeignClientIsRefused(t *testing.T) {
	_, socket := startPool(t, task.Config{MaxRunningNum: 1, MaxPackageSize: 4096})

	t.Run("no slot: -2", func(t *testing.T) {
		holder, f := dial(t, socket), dial(t, socket)
		holder.send(1, 1, 1, 0, "hold", nil, map[string]string{"taskd.cancel": "1"})
		require.True(t, holder.receive().OK)
		f.call(1, "echo", map[string]any{"Value": 1})
		got := f.receive()
		assert.Equal(t, int64(-2), got.Status)
		assert.Equal(t, int64(1), got.ID)
		assert.Zero(t, got.TaskID)

		// The holder's end cancels its task, which gives the slot back.
		require.NoError(t, holder.conn.Close())
		limit := time.Now().Add(waitLimit)
		for id := uint64(2); ; id++ {
			f.call(id, "echo", map[string]any{"Value": 1})
			if f.receive().OK {
				break
			}
			require.True(t, time.Now().Before(limit), "the slot did not come back")
		}
	})
	for name, bytes := range map[string][]byte{
		"a body of nothing":  {0, 0, 0, 0},
		"a body cut short":   {0, 0, 0, 9, 0x96, 1},
		"a header cut short": {0, 0},
	} {
		t.Run(name+": -3, closed", func(t *testing.T) {
			f := dial(t, socket)
			f.write(bytes)
			require.NoError(t, f.conn.CloseWrite())
			got := f.receive()
			assert.Equal(t, int64(-3), got.Status)
			assert.Zero(t, got.ID)
			f.closed()
		})
	}
	t.Run("what is no package: -4, and the connection serves on", func(t *testing.T) {
		f := dial(t, socket)
		f.send(2, 2, 1, 0, "echo", nil)
		f.send(1, 3, 2, 0, "echo", nil)
		f.send(1, 2, 3, 0, "no such task", nil)
		f.send(1, 2, 4, 0, "fill", map[string]any{"N": "many"})
		for _, id := range []int64{1, 2, 3, 4} {
			got := f.receive()
			assert.Equal(t, int64(-4), got.Status, "id %d", id)
			assert.Equal(t, id, got.ID)
		}
		f.write([]byte{0, 0, 0, 5, 0xdd, 4, 0, 0, 0}) // an array of 64 Mi elements
		assert.Equal(t, int64(-4), f.receive().Status)
		f.call(5, "echo", map[string]any{"Value": "still here"})
		assert.Equal(t, "still here", f.receive().Data)
	})
	t.Run("an id that does not grow: -4, closed", func(t *testing.T) {
		f := dial(t, socket)
		f.call(9, "echo", map[string]any{"Value": 1})
		require.True(t, f.receive().OK)
		f.call(9, "echo", map[string]any{"Value": 1})
		assert.Equal(t, int64(-4), f.receive().Status)
		f.closed()
	})
	t.Run("a deadline that has passed: -6", func(t *testing.T) {
		f := dial(t, socket)
		for i, expire := range []int64{monotonic(t) - 1, -1} {
			f.send(1, 2, i+1, expire, "echo", map[string]any{"Value": 1})
			assert.Equal(t, int64(-6), f.receive().Status)
		}
	})
	t.Run("a frame over the limit: -8 from the header alone, closed", func(t *testing.T) {
		f := dial(t, socket)
		f.write([]byte{0, 0, 0x0f, 0xfd})
		got := f.receive()
		assert.Equal(t, int64(-8), got.Status)
		assert.Zero(t, got.ID)
		f.closed()
	})
}

// A drain answers what was read, and says up to which id that was.
func TestAForeignClientIsToldOfADrain(t *testing.T) {
	pool, socket := startPool(t, task.Config{})
	f := dial(t, socket)
	f.call(3, "echo", map[string]any{"Value": 1})
	require.True(t, f.receive().OK)
	f.call(4, "hold", nil)
	f.send(1, 1, 5, 0, "echo", map[string]any{"Value": 1})
	require.Equal(t, int64(5), f.receive().ID, "the task before it is running")

	ended := make(chan error, 1)
	go func() { ended <- pool.Shutdown(context.Background()) }()
	var notice, last answer
	for range 2 {
		if a := f.receive(); a.ID == 0 {
			notice = a
		} else {
			last = a
		}
	}
	assert.Equal(t, answer{Status: -2, Data: int64(5)}, notice)
	assert.Equal(t, answer{ID: 4, OK: true, Data: "drained", TaskID: last.TaskID}, last)
	f.closed()
	select {
	case err := <-ended:
		assert.NoError(t, err)
	case <-time.After(waitLimit):
		t.Fatal("Shutdown did not return")
	}
}
