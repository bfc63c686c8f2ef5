package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

type badValue struct{ C chan int }

type hostileError struct{}

func (*hostileError) Error() string { panic("in Error") }

// A treacherousError panics when it is compared, looked through or unwrapped.
type treacherousError struct{}

func (treacherousError) Error() string { return "treachery" }
func (treacherousError) Is(error) bool { panic("in Is") }
func (treacherousError) As(any) bool   { panic("in As") }
func (treacherousError) Unwrap() error { panic("in Unwrap") }

// Each way in which a task can end, with what the caller gets and what counts, on a goroutine
// of its own and on the connection's.
func TestHowTasksEnd(t *testing.T) {
	for _, c := range slices.Concat(resultEnds, panicEnds) {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, alone %t", c.name, alone), func(t *testing.T) { c.check(t, alone) })
		}
	}
}

// An endCase is a way in which a task can end.
type endCase struct {
	name   string
	task   testTask
	ok     bool
	value  any
	status protocol.Status
	text   string
	fails  bool // counts as failed
	told   string
	logged string
}

func (tt endCase) check(t *testing.T, alone bool) {
	r := start(t, nil)
	task := tt.task
	r.tasks["t"] = func([]byte) (Task, error) { return &task, nil }
	p := r.dial()
	got := p.call(protocol.Package{Task: []byte("t"), Alone: alone})
	require.Zero(t, r.row.Running(), "the slot is free before the answer can be read")
	assert.Equal(t, tt.status, got.Status, got.Text())
	assert.NotZero(t, got.TaskID)
	if tt.ok {
		assert.Equal(t, tt.value, valueOf(t, got))
	} else {
		assert.Contains(t, got.Text(), tt.text)
		assert.LessOrEqual(t, len(got.Text()), 64<<10)
	}
	want := count{accepted: 1, success: 1}
	if tt.fails {
		want = count{accepted: 1, fail: 1}
	}
	assert.Equal(t, want, r.still())
	told := r.told()
	if tt.told == "" {
		assert.Empty(t, told)
	} else if assert.Len(t, told, 1, "the pool hears of it once") {
		assert.Equal(t, "t", told[0].Task)
		assert.Equal(t, got.TaskID, told[0].TaskID)
		assert.Contains(t, textOf(told[0].Err), tt.told)
	}
	assert.Contains(t, r.log.String(), tt.logged, "the log has the stack")
	p.works()
}

var errBoom = errors.New("boom")

func failing(context.Context, Info) (any, error) { return nil, errBoom }

func returning(v any) func(context.Context, Info) (any, error) {
	return func(context.Context, Info) (any, error) { return v, nil }
}

// resultEnds are tasks that return.
var resultEnds = []endCase{
	{name: "sync_value", task: testTask{run: returning("ok")}, ok: true, value: "ok"},
	{name: "sync_negative_int", task: testTask{run: returning(-2)}, ok: true, value: int8(-2)},
	{name: "sync_null", task: testTask{run: returning(nil)}, ok: true},
	{
		name: "raise_then_handler_returns",
		task: testTask{
			run:    failing,
			handle: func(_ context.Context, err error, _ Info) (any, error) { return "fallback for " + err.Error(), nil },
		},
		ok: true, value: "fallback for boom", fails: true,
	},
	{
		name: "raise_then_handler_raises",
		task: testTask{
			run:    failing,
			handle: func(context.Context, error, Info) (any, error) { return nil, errors.New("no way out") },
		},
		status: protocol.StatusTaskError, text: "no way out", fails: true, told: "no way out",
	},
	{
		name:   "error without a handler",
		task:   testTask{run: failing},
		status: protocol.StatusTaskError,
		text:   "boom",
		fails:  true,
		told:   "boom",
	},
	{
		name:   "value beside an error",
		task:   testTask{run: func(context.Context, Info) (any, error) { return "lost", errBoom }},
		status: protocol.StatusTaskError, text: "boom", fails: true, told: "boom",
	},
	{
		name:   "unserialisable_result",
		task:   testTask{run: returning(badValue{})},
		status: protocol.StatusTaskError,
		text:   "badValue",
		fails:  true,
	},
	{
		name: "response_too_large", task: testTask{run: returning(strings.Repeat("x", 3<<20))},
		status: protocol.StatusResponseTooLarge, text: "2097152", fails: true,
	},
	{
		name: "very long error",
		task: testTask{
			run: func(context.Context, Info) (any, error) { return nil, errors.New(strings.Repeat("é", 1<<20)) },
		},
		status: protocol.StatusTaskError, text: strings.Repeat("é", 1000), fails: true, told: "éé",
	},
}

// panicEnds are tasks that panic or end their goroutine, themselves or by what they return.
var panicEnds = []endCase{
	{
		name:   "panic without a handler",
		task:   testTask{run: func(context.Context, Info) (any, error) { panic("out of order") }},
		status: protocol.StatusTaskError, text: "panic: out of order", fails: true, told: "panic: out of order", logged: "call_test.go",
	},
	{
		name: "panic that the handler turns into a result",
		task: testTask{
			run: func(context.Context, Info) (any, error) { panic(errBoom) },
			handle: func(_ context.Context, err error, _ Info) (any, error) {
				var p *PanicError
				return errors.As(err, &p) && errors.Is(err, errBoom) && len(p.Stack) > 0, nil
			},
		},
		ok: true, value: true, fails: true, logged: "call_test.go",
	},
	{
		name:   "handler that panics",
		task:   testTask{run: failing, handle: func(context.Context, error, Info) (any, error) { panic("twice") }},
		status: protocol.StatusTaskError, text: "panic: twice", fails: true, told: "panic: twice",
	},
	{
		name:   "task that ends its goroutine",
		task:   testTask{run: func(context.Context, Info) (any, error) { runtime.Goexit(); return nil, nil }},
		status: protocol.StatusTaskError, text: "Goexit", fails: true, told: "Goexit",
	},
	{
		name: "task that ends its goroutine, handled by its handler",
		task: testTask{
			run:    func(context.Context, Info) (any, error) { runtime.Goexit(); return nil, nil },
			handle: func(context.Context, error, Info) (any, error) { return "saved", nil },
		},
		ok: true, value: "saved", fails: true,
	},
	{
		name: "handler that ends its goroutine",
		task: testTask{run: failing, handle: func(context.Context, error, Info) (any, error) {
			runtime.Goexit()
			return nil, nil
		}},
		status: protocol.StatusTaskError, text: "Goexit", fails: true, told: "Goexit",
	},
	{
		name:   "error whose Error method panics",
		task:   testTask{run: func(context.Context, Info) (any, error) { return nil, &hostileError{} }},
		status: protocol.StatusTaskError, text: "hostileError", fails: true, told: "hostileError",
	},
	{
		name:   "error whose Is, As and Unwrap panic",
		task:   testTask{run: func(context.Context, Info) (any, error) { return nil, treacherousError{} }},
		status: protocol.StatusTaskError, text: "treachery", fails: true, told: "treachery",
	},
	{
		name:   "panic with such an error",
		task:   testTask{run: func(context.Context, Info) (any, error) { panic(treacherousError{}) }},
		status: protocol.StatusTaskError, text: "treachery", fails: true, told: "treachery",
	},
}

// slot_released_after_failure, and not twice: a worker of one slot goes on after every kind of
// end.
func TestSlotIsReleasedOnce_Row3(t *testing.T) {
	// swoole-src #657: each sync call subtracts one too many, the counter goes below zero. Any
	// order of time-out, error, success and close changes running by exactly +1 -1.
	r := start(t, nil)
	p := r.dial()
	accepted := uint64(0)
	for i := range 60 {
		name := []string{"fail", "panic", "goexit", "echo"}[i%4]
		got := p.call(protocol.Package{Task: []byte(name), Payload: text("x"), Alone: i%3 == 0})
		require.NotZero(t, got.TaskID)
		require.Zero(t, r.row.Running())
		accepted++
		q := r.dial() // a caller that goes before its answer
		q.send(protocol.Package{Task: []byte("block")})
		r.awaitEntered()
		require.NoError(t, q.nc.Close())
		require.Equal(t, 1, r.row.Running())
		r.gate <- struct{}{}
		accepted++
		require.Equal(t, accepted, r.still().accepted)
	}
}

// limit_boundary and over_limit_race: never more than the slots, and no queue.
func TestSlotsAreNeverExceeded(t *testing.T) {
	r := start(t, nil)
	var peers []*peer
	const calls = 40
	for range calls {
		p := r.dial()
		p.send(protocol.Package{Task: []byte("block")})
		peers = append(peers, p)
	}
	for range maxRunning {
		r.awaitEntered()
	}
	require.Equal(t, maxRunning, r.row.Running())
	var busy atomic.Int64
	done := make(chan struct{}, calls)
	for _, p := range peers {
		go func() {
			if got, err := p.read(); err == nil && got.Status == protocol.StatusBusy {
				busy.Add(1)
			}
			done <- struct{}{}
		}()
	}
	for range calls - maxRunning {
		<-done
	}
	require.EqualValues(t, calls-maxRunning, busy.Load())
	close(r.gate)
	for range maxRunning {
		<-done
	}
	require.Equal(t, count{accepted: maxRunning, success: maxRunning, busy: calls - maxRunning}, r.still())
}

func TestWhatATaskIsTold(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.Index = 3 })
	p := r.dial()
	require.Equal(
		t,
		protocol.Greeting{Index: 3, Generation: 7, PID: p.greeting.PID, MaxPackageSize: protocol.DefaultPackageSize},
		p.greeting,
	)
	require.NotZero(t, p.greeting.PID)

	begun := time.Now()
	p.send(
		protocol.Package{
			Task:   []byte("block"),
			Expire: sys.Now() + int64(time.Hour),
			Meta:   map[string]string{"trace": "abc", protocol.MetaCancel: "1", "taskd.later": "2"},
		},
	)
	first := r.awaitEntered()
	require.Equal(t, 3, first.WorkerIndex)
	require.WithinDuration(t, begun.Add(time.Hour), first.Deadline, time.Minute)
	require.Equal(t, map[string]string{"trace": "abc"}, first.Meta)
	p.send(protocol.Package{Task: []byte("block")})
	second := r.awaitEntered()
	require.Greater(t, second.TaskID, first.TaskID)
	require.True(t, second.Deadline.IsZero(), "no deadline")
	close(r.gate)
}

// async_id: an asynchronous call is answered as soon as it holds its slot, before the task
// ends.
func TestAsyncIsAnsweredBeforeTheRunEnds(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) {
			r := start(t, nil)
			p := r.dial()
			got := p.call(protocol.Package{Task: []byte("block"), Type: protocol.Async, Alone: alone})
			require.Nil(t, valueOf(t, got))
			require.Equal(t, r.awaitEntered().TaskID, got.TaskID)
			require.Equal(t, 1, r.row.Running())
			p.works()
			close(r.gate)
			require.Equal(t, count{accepted: 2, success: 2}, r.still())
		})
	}
}

func TestAsyncFailureIsToldToThePool(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	got := p.call(protocol.Package{Task: []byte("goexit"), Type: protocol.Async, Alone: true})
	require.True(t, got.OK)
	require.Equal(t, count{accepted: 1, fail: 1}, r.still())
	require.Len(t, r.told(), 1)
	p.works()
}

// expired_while_running: a task that has begun is not cut short by its caller's deadline.
func TestDeadlineDoesNotCutARunningTask(t *testing.T) {
	r := start(t, nil)
	r.add("look", func(ctx context.Context, info Info) (any, error) {
		<-time.After(time.Until(info.Deadline) + 20*time.Millisecond)
		_, has := ctx.Deadline()
		return []any{has, ctx.Err() == nil}, nil
	})
	p := r.dial()
	v := p.value(protocol.Package{Task: []byte("look"), Expire: sys.Now() + int64(500*time.Millisecond)})
	require.Equal(t, []any{false, true}, v)
	require.Equal(t, count{accepted: 1, success: 1}, r.still())
}

// Black hole: failures of the worker itself are told after ten in a row; the task's own never
// are.
func TestSuspicion(t *testing.T) {
	told := make(chan error, 1000)
	r := start(t, func(r *rig) { r.cfg.OnSuspect = func(err error) { told <- err } })
	r.add("starved", func(context.Context, Info) (any, error) { return nil, fmt.Errorf("open x: %w", syscall.EMFILE) })
	p := r.dial()
	fail := func(name string, times int) {
		for range times {
			p.call(protocol.Package{Task: []byte(name), Alone: true})
		}
	}
	fail("fail", 50)
	fail("starved", 9)
	p.works()
	fail("starved", 9)
	require.Empty(t, told)
	fail("starved", 200) // one that took over 1 ms does not count
	require.NotEmpty(t, told)
	require.ErrorIs(t, <-told, syscall.EMFILE)
}
