package pool_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

type Nested struct {
	Name  string
	Tags  []string
	Inner *Nested
	At    time.Time
	Any   any
	Map   map[int]string
	Raw   []byte
	Big   uint64
	Small int64
}

func TestResultsArriveAsTheyLeft(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	for name, c := range map[string]struct{ sent, value any }{
		"nil":             {nil, nil},
		"minus two":       {-2, int64(-2)},
		"empty string":    {"", ""},
		"true":            {true, true},
		"smallest int":    {int64(math.MinInt64), int64(math.MinInt64)},
		"largest int":     {int64(math.MaxInt64), int64(math.MaxInt64)},
		"largest uint":    {uint64(math.MaxUint64), uint64(math.MaxUint64)},
		"float":           {1.5, 1.5},
		"infinity":        {math.Inf(1), math.Inf(1)},
		"bytes":           {[]byte{0, 1, 255}, []byte{0, 1, 255}},
		"no bytes":        {[]byte{}, []byte{}},
		"a list":          {[]any{1, "a", nil}, []any{int64(1), "a", nil}},
		"a map":           {map[string]any{"a": -1}, map[string]any{"a": int64(-1)}},
		"keys of numbers": {map[int]string{7: "x"}, map[any]any{int64(7): "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := p.Sync(t.Context(), Echo{c.sent})
			require.NoError(t, err)
			got, err := r.Value()
			require.NoError(t, err)
			assert.Equal(t, c.value, got)
		})
	}
	t.Run("time", func(t *testing.T) {
		got, err := task.As[time.Time](p.Sync(t.Context(), Echo{at}))
		require.NoError(t, err)
		assert.True(t, at.Equal(got), "got %v", got)
	})
	t.Run("nested structs and maps", func(t *testing.T) {
		want := Nested{
			Name: "a", Tags: []string{"x", ""}, At: at, Any: int64(-2), Map: map[int]string{300: "c"},
			Raw: []byte("raw"), Big: math.MaxUint64, Small: math.MinInt64,
			Inner: &Nested{Name: "b", At: at, Any: "s"},
		}
		got, err := task.As[Nested](p.Sync(t.Context(), Echo{want}))
		require.NoError(t, err)
		assert.True(t, want.At.Equal(got.At))
		got.At, got.Inner.At = want.At, want.Inner.At
		assert.Equal(t, want, got)
	})
}

func TestNumbersThatDoNotFitAreErrors(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	r, err := p.Sync(t.Context(), Echo{300})
	require.NoError(t, err)
	var small int8
	err = r.Decode(&small)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "300")
	_, err = task.As[int64](p.Sync(t.Context(), Echo{uint64(math.MaxUint64)}))
	assert.Error(t, err)
	_, err = task.As[uint](p.Sync(t.Context(), Echo{-1}))
	assert.Error(t, err)
}

func TestDefinedFunctions(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	n, err := double.Sync(t.Context(), p, 21)
	require.NoError(t, err)
	assert.Equal(t, 42, n)
	_, err = double.Sync(t.Context(), p, -1)
	assert.Contains(t, callError(t, err).Message, "-1 is negative")
	id, err := double.Async(t.Context(), p, 1)
	require.NoError(t, err)
	assert.Positive(t, id)
	outs, errs := double.SyncMany(t.Context(), p, []int{1, -2, 3})
	assert.Equal(t, []int{2, 0, 6}, outs)
	assert.NoError(t, errors.Join(errs[0], errs[2]))
	assert.ErrorIs(t, errs[1], task.ErrTask)
}

func TestNamedTasks(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	s, err := task.As[string](p.Sync(t.Context(), task.Named("test.greet", map[string]any{"Name": "you"})))
	require.NoError(t, err)
	assert.Equal(t, "hello you", s)
	_, err = p.Sync(t.Context(), task.Named("test.missing", nil))
	e := callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status)
	assert.Contains(t, e.Message, "test.missing")
	_, err = p.Sync(t.Context(), task.Named("test.greet", map[string]any{"Name": 5}))
	e = callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status, "arguments that do not decode")
	assert.Equal(t, task.NotRun, e.Delivery)
	_, err = task.Named("test.greet", nil).Run(t.Context(), task.Info{})
	assert.Error(t, err)
}

func TestUnregisteredTypesAreRefusedAtTheCall(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), &unregistered{})
	e := callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	assert.Contains(t, e.Message, "pool_test.unregistered")
}

func TestFailures(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	for name, c := range map[string]struct {
		fail     Fail
		value    string // the result, when the handler returns one
		message  string
		reported bool
	}{
		"an error, no handler answer": {Fail{Text: "e1"}, "", "e1", true},
		"a panic":                     {Fail{Text: "p1", Panics: true}, "", "p1", true},
		"error, the handler returns":  {Fail{Text: "e2", Handler: "returns"}, "fallback", "", false},
		"panic, the handler returns":  {Fail{Text: "p2", Panics: true, Handler: "returns"}, "fallback", "", false},
		"error, the handler fails":    {Fail{Text: "e3", Handler: "fails"}, "", "handler failed", true},
		"panic, the handler panics":   {Fail{Text: "p3", Panics: true, Handler: "panics"}, "", "handler panicked", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := p.still()
			reports := strings.Count(p.log.String(), "OnException worker=0")
			s, err := task.As[string](p.Sync(t.Context(), c.fail))
			if c.message == "" {
				require.NoError(t, err)
				assert.Equal(t, c.value, s)
			} else {
				e := callError(t, err)
				assert.Equal(t, task.ErrTask, e.Status)
				assert.Equal(t, task.Ran, e.Delivery)
				assert.Contains(t, e.Message, c.message)
				assert.Positive(t, e.TaskID)
				assert.Equal(t, p.Status()[0].PID, e.PID)
				reports++
			}
			p.logged("OnException worker=0", reports)
			after := p.still()
			assert.EqualValues(t, 1, after.Fail-before.Fail)
			assert.Equal(t, before.Success, after.Success)
		})
	}
	assert.Contains(t, p.log.String(), "tasks_test.go", "the stack of a panic is in the log")
}

func TestCallsBeforeStartAndAfterShutdown(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrNotStarted)
	assert.Equal(t, task.NotRun, callError(t, err).Delivery)
	assert.Nil(t, p.Status())
	require.NoError(t, p.Start(t.Context()))
	assert.ErrorContains(t, p.Start(t.Context()), "once")
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, p.Shutdown(t.Context()), "any number of times")
	_, err = p.Async(t.Context(), Echo{1})
	assert.ErrorIs(t, err, task.ErrClosed)
	assert.ErrorIs(t, err, task.ErrProcessBusy)
	for _, o := range p.SyncMany(t.Context(), []task.Runner{Echo{1}, Echo{2}}) {
		assert.ErrorIs(t, o.Err, task.ErrClosed)
	}
	assert.Error(t, p.Start(t.Context()))
}

func TestShutdownBeforeStart(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1})
	require.NoError(t, p.Shutdown(t.Context()))
	assert.ErrorIs(t, p.Start(t.Context()), task.ErrClosed)
}

// shutdown(wait=False) and a dropped handle strand queued work.
func TestShutdownWithCallsOpen_Row61(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	m := testsync.NewRendezvous(t)
	answers := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
			answers <- err
		}()
	}
	var held []*testsync.Held
	for range 8 {
		held = append(held, m.Next())
	}
	done := make(chan error)
	go func() { done <- p.Shutdown(context.Background()) }()
	for _, g := range held {
		g.Release("")
	}
	for range 8 {
		assert.NoError(t, <-answers)
	}
	assert.NoError(t, <-done)
}

func TestLimitsOfFrames(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, MaxPackageSize: 64 << 10})
	before := p.still()
	_, err := p.Sync(t.Context(), Blob{In: make([]byte, 64<<10)})
	e := callError(t, err)
	assert.Equal(t, task.ErrPackageTooLarge, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	assert.Contains(t, e.Message, "65536", "the limit is named")
	assert.Equal(t, before.Accepted, p.still().Accepted)
	_, err = p.Sync(t.Context(), Blob{Out: 64 << 10})
	e = callError(t, err)
	assert.Equal(t, task.ErrResponseTooLarge, e.Status)
	assert.Equal(t, task.Ran, e.Delivery)
	r, err := p.Sync(t.Context(), Blob{In: make([]byte, 60<<10), Out: 60 << 10})
	require.NoError(t, err)
	b, err := task.As[[]byte](r, nil)
	require.NoError(t, err)
	assert.Len(t, b, 60<<10)
}

func TestArgumentsThatCannotBeEncoded(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{make(chan int)})
	e := callError(t, err)
	assert.Equal(t, task.ErrTask, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
}

func TestManyCalls(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	rs := make([]task.Runner, 200)
	for i := range rs {
		rs[i] = Echo{i}
	}
	rs[7], rs[9] = Fail{Text: "seven"}, &unregistered{}
	for i, o := range p.SyncMany(t.Context(), rs) {
		switch i {
		case 7:
			assert.ErrorIs(t, o.Err, task.ErrTask)
		case 9:
			assert.ErrorIs(t, o.Err, task.ErrIllegalPackage)
		default:
			n, err := task.As[int](o.Result, o.Err)
			require.NoError(t, err)
			assert.Equal(t, i, n)
			assert.Positive(t, o.TaskID)
		}
	}
	ids := map[uint64]bool{}
	for i, o := range p.AsyncMany(t.Context(), rs) {
		if i == 9 {
			continue
		}
		require.NoError(t, o.Err)
		ids[o.TaskID] = true
	}
	assert.Len(t, ids, 199, "one acceptance each")
	sum := p.still()
	assert.EqualValues(t, 398, sum.Accepted)
	assert.Empty(t, p.SyncMany(t.Context(), nil))
}

func TestLeastLoadedWorkerIsChosen(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 3, MaxRunningNum: 2})
	m := testsync.NewRendezvous(t)
	perWorker := map[int]int{}
	var held []*testsync.Held
	for range 6 {
		_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
		require.NoError(t, err)
		g := m.Next()
		perWorker[g.Worker]++
		held = append(held, g)
	}
	assert.Equal(t, map[int]int{0: 2, 1: 2, 2: 2}, perWorker)
	_, err := p.Sync(t.Context(), Echo{1})
	e := callError(t, err)
	assert.Equal(t, task.ErrProcessBusy, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	for _, g := range held {
		g.Release("")
	}
}

// "No free workers" under bursts; users want a bounded wait.
func TestBurstWaitsForSlots_Row63(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2, MaxRunningNum: 4})
	var wg sync.WaitGroup
	errs := make(chan error, 24)
	for range 24 { // three times what the pool can run at once
		wg.Go(func() {
			_, err := p.Sync(t.Context(), Slow{For: 20 * time.Millisecond}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		assert.NoError(t, err)
	}
}

func TestWaitIsBounded(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 1})
	m := testsync.NewRendezvous(t)
	_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
	require.NoError(t, err)
	g := m.Next()
	for name, opts := range map[string][]task.CallOption{
		"by WithWait":     {task.WithWait(50 * time.Millisecond), task.WithTimeout(waitLimit)},
		"by the deadline": {task.WithWait(waitLimit), task.WithTimeout(50 * time.Millisecond)},
	} {
		_, err = p.Sync(t.Context(), Echo{1}, opts...)
		assert.Equal(t, task.NotRun, callError(t, err).Delivery, name)
	}
	g.Release("")
}
