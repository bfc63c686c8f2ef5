package sharedstate

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/tasktype"
)

func TestPickTakesTheLeastLoaded(t *testing.T) {
	table := newTestTable(t, 3, 4)
	rows := []testRow{serving(t, table, 0, 1), serving(t, table, 1, 1), serving(t, table, 2, 1)}
	for i, n := range []int{2, 1, 3} {
		for range n {
			require.True(t, rows[i].Admit())
		}
	}
	c := NewChooser(table.Table)
	r, ok := c.Pick()
	require.True(t, ok)
	assert.Equal(t, rows[1].Row, r)
	assert.Equal(t, 1, c.InFlight(r))

	rows[1].SetAccepting(false)
	r, ok = c.Pick()
	require.True(t, ok)
	assert.Equal(t, rows[0].Row, r)
	c.Done(r)
	assert.Zero(t, c.InFlight(r))
}

func TestOwnCallsInFlightCountBeforeTheyAreAdmitted(t *testing.T) {
	table := newTestTable(t, 2, 2)
	serving(t, table, 0, 1)
	serving(t, table, 1, 1)
	c := NewChooser(readOnly(t, table))
	picks := map[int]int{}
	for range 4 {
		r, ok := c.Pick()
		require.True(t, ok)
		picks[r.Index()]++
	}
	assert.Equal(t, map[int]int{0: 2, 1: 2}, picks)
	_, ok := c.Pick()
	assert.False(t, ok, "both are full of our own calls")
}

func TestNobodyIsPicked(t *testing.T) {
	tests := map[string]func(table *Parent, r testRow){
		"not accepting":       func(_ *Parent, r testRow) { r.SetAccepting(false) },
		"full":                func(_ *Parent, r testRow) { r.Admit() },
		"not current":         func(table *Parent, _ testRow) { table.SetCurrent(0, ParentRow{}) },
		"finished":            func(_ *Parent, r testRow) { r.Finish(End{Reason: tasktype.ReasonCrashed}) },
		"closed":              func(table *Parent, _ testRow) { table.SetClosed() },
		"a row that is none":  func(table *Parent, _ testRow) { table.current[0].Store(1 << 30) },
		"a row that is none2": func(table *Parent, _ testRow) { table.current[0].Store(1<<32 - 1) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			table := newTestTable(t, 1, 1)
			r := serving(t, table, 0, 1)
			spoil(table, r)
			_, ok := NewChooser(table.Table).Pick()
			assert.False(t, ok)
		})
	}
}

func TestTiesAreBrokenEvenly(t *testing.T) {
	const workers, busy, picks = 5, 3, 40_000
	table := newTestTable(t, workers, 4)
	for i := range workers {
		r := serving(t, table, i, 1)
		if i == busy {
			require.True(t, r.Admit())
		}
	}
	c := NewChooser(table.Table)
	counts := make([]int, workers)
	for range picks {
		r, ok := c.Pick()
		require.True(t, ok)
		counts[r.Index()]++
		c.Done(r)
	}
	for i, n := range counts {
		if i == busy {
			assert.Zero(t, n)
			continue
		}
		// Six standard deviations of a fair choice among four.
		assert.InDelta(t, picks/4, n, 520, "index %d of %v", i, counts)
	}
}

// All clients see the same lightest worker and storm it: the calls that
// this process has in flight spread it out, before any is admitted.
func TestManyCallersDoNotStormOneWorker_Row67(t *testing.T) {
	const workers, callers = 8, 64
	table := newTestTable(t, workers, 16)
	for i := range workers {
		serving(t, table, i, 1)
	}
	c := NewChooser(readOnly(t, table))
	var start, all sync.WaitGroup
	start.Add(1)
	counts := make([]atomic.Int32, workers)
	for range callers {
		all.Go(func() {
			start.Wait()
			if r, ok := c.Pick(); ok {
				counts[r.Index()].Add(1)
			}
		})
	}
	start.Done()
	all.Wait()
	total := int32(0)
	for i := range counts {
		n := counts[i].Load()
		total += n
		assert.LessOrEqual(t, n, int32(12), "index %d: more than 1.5 of the mean", i)
	}
	assert.Equal(t, int32(callers), total)
}

func TestOwnCallsNeverExceedTheLimit(t *testing.T) {
	const limit, goroutines = 3, 8
	table := newTestTable(t, 1, limit)
	r := serving(t, table, 0, 1)
	c := NewChooser(table.Table)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range 2_000 {
				if _, ok := c.Pick(); ok {
					if n := c.InFlight(r.Row); n < 1 || n > limit {
						t.Errorf("%d in flight", n)
					}
					c.Done(r.Row)
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, c.InFlight(r.Row))
}

func TestPickAllocatesNothing(t *testing.T) {
	table := newTestTable(t, 4, 8)
	for i := range 4 {
		serving(t, table, i, 1)
	}
	c := NewChooser(table.Table)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if r, ok := c.Pick(); ok {
			c.Done(r)
		}
	}))
}

func BenchmarkChoose(b *testing.B) {
	for _, workers := range []int{4, 512} {
		for name, busy := range map[string]bool{"idle": false, "busy": true} {
			c := someChooser(b, workers, busy)
			b.Run(fmt.Sprintf("%d/%s", workers, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r, _ := c.Pick()
					c.Done(r)
				}
			})
			b.Run(fmt.Sprintf("%d/%s/parallel", workers, name), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						r, _ := c.Pick()
						c.Done(r)
					}
				})
			})
		}
	}
}

// someChooser has idle workers, or busy ones with three unlike loads.
func someChooser(b *testing.B, workers int, busy bool) *Chooser {
	table := newTestTable(b, workers, 128)
	for i := range workers {
		r := serving(b, table, i, 1)
		if busy {
			for range 1 + rand.IntN(3) {
				r.Admit()
			}
		}
	}
	return NewChooser(table.Table)
}
