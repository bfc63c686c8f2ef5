package sharedstate

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type pick struct {
	row Row
	ok  bool
}

// waits starts a PickWait and returns when it is in the queue.
func waits(t *testing.T, c *Chooser, ctx context.Context, d time.Duration) <-chan pick {
	t.Helper()
	before := c.queue.waiting.Load()
	done := make(chan pick, 1)
	go func() {
		r, ok := c.PickWait(ctx, d)
		done <- pick{r, ok}
	}()
	eventually(t, "it waits", func() bool { return c.queue.waiting.Load() > before })
	return done
}

// goroutinesIn returns how many goroutines are in the function.
func goroutinesIn(function string) int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), function)
}

func ended(t *testing.T, done <-chan pick) pick {
	t.Helper()
	select {
	case p := <-done:
		return p
	case <-time.After(limit):
		require.FailNow(t, "it still waits")
		return pick{}
	}
}

// fullPool is one worker with one slot, which is taken.
func fullPool(t *testing.T) (*Parent, testRow, *Chooser) {
	t.Helper()
	table := newTestTable(t, 1, 1)
	r := serving(t, table, 0, 1)
	require.True(t, r.Admit())
	c := NewChooser(readOnly(t, table))
	c.queue.recheck = time.Hour // nothing but a wake-up may help
	t.Cleanup(c.Close)
	return table, r, c
}

func TestAWaiterIsServed(t *testing.T) {
	tests := map[string]func(t *testing.T, table *Parent, full testRow){
		"when a slot becomes free": func(_ *testing.T, _ *Parent, full testRow) { full.Release(Succeeded) },
		"when a successor becomes current": func(t *testing.T, table *Parent, _ testRow) {
			r := allocate(t, table, 0, 2)
			r.SetAccepting(true)
			table.SetCurrent(0, r.parent)
		},
		"when a worker accepts": func(t *testing.T, table *Parent, full testRow) {
			r := allocate(t, table, 0, 2)
			table.SetCurrent(0, r.parent)
			r.SetAccepting(true)
		},
	}
	for name, free := range tests {
		t.Run(name, func(t *testing.T) {
			table, full, c := fullPool(t)
			done := waits(t, c, context.Background(), time.Hour)
			eventually(t, "it sleeps", func() bool { return goroutinesIn("shm.FutexWait(") == 1 })
			free(t, table, full)
			p := ended(t, done)
			assert.True(t, p.ok)
			assert.Equal(t, 1, c.InFlight(p.row))
		})
	}
}

func TestAWaiterGoesWithoutARow(t *testing.T) {
	t.Run("when its time is up", func(t *testing.T) {
		_, _, c := fullPool(t)
		assert.False(t, ended(t, waits(t, c, context.Background(), 20*time.Millisecond)).ok)
	})
	t.Run("when its context ends", func(t *testing.T) {
		_, _, c := fullPool(t)
		ctx, cancel := context.WithCancel(context.Background())
		done := waits(t, c, ctx, time.Hour)
		cancel()
		assert.False(t, ended(t, done).ok)
	})
	t.Run("when the pool closes", func(t *testing.T) {
		table, _, c := fullPool(t)
		done := waits(t, c, context.Background(), time.Hour)
		table.SetClosed()
		assert.False(t, ended(t, done).ok)
	})
	t.Run("when the chooser closes", func(t *testing.T) {
		_, _, c := fullPool(t)
		done := waits(t, c, context.Background(), time.Hour)
		c.Close()
		assert.False(t, ended(t, done).ok)
		_, ok := c.PickWait(context.Background(), time.Hour)
		assert.False(t, ok)
	})
	t.Run("at once without time", func(t *testing.T) {
		_, _, c := fullPool(t)
		_, ok := c.PickWait(context.Background(), 0)
		assert.False(t, ok)
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	table := newTestTable(t, 1, 1)
	serving(t, table, 0, 1)
	c := NewChooser(table.Table)
	c.queue.recheck = time.Hour
	t.Cleanup(c.Close)
	held, ok := c.Pick()
	require.True(t, ok)
	ctx, cancel := context.WithCancel(context.Background())
	first := waits(t, c, context.Background(), time.Hour)
	givesUp := waits(t, c, ctx, time.Hour)
	third := waits(t, c, context.Background(), time.Hour)
	cancel()
	assert.False(t, ended(t, givesUp).ok)

	c.Done(held)
	p := ended(t, first)
	require.True(t, p.ok)
	assert.Empty(t, third, "the slot is the first one's")
	c.Done(p.row)
	assert.True(t, ended(t, third).ok)
}

func TestOneThreadWaitsForAll(t *testing.T) {
	_, full, c := fullPool(t)
	c.queue.recheck = defaultRecheck
	sleepers := func() int { return goroutinesIn("sharedstate.(*Chooser).watch(") }
	var all []<-chan pick
	for range 30 {
		all = append(all, waits(t, c, context.Background(), time.Hour))
	}
	assert.Equal(t, 1, sleepers())
	full.Release(Succeeded)
	for _, done := range all {
		// Each gives its slot on to the next.
		p := ended(t, done)
		require.True(t, p.ok)
		c.Done(p.row)
	}
	eventually(t, "no caller waits, so none sleeps", func() bool { return sleepers() == 0 })
}
