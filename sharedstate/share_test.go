package sharedstate

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFlightOf returns the sorted counts of the chooser's own calls.
func inFlightOf(c *Chooser, rows []testRow) []int {
	var counts []int
	for _, r := range rows {
		counts = append(counts, c.InFlight(r.Row))
	}
	slices.Sort(counts)
	return counts
}

func TestManyPicksAreAsGoodAsOneByOne(t *testing.T) {
	for range 300 {
		workers, limit := 1+rand.IntN(6), 1+rand.IntN(20)
		table := newTestTable(t, workers, limit)
		var rows []testRow
		together, single := NewChooser(table.Table), NewChooser(table.Table)
		for i := range workers {
			r := serving(t, table, i, 1)
			rows = append(rows, r)
			busy := rand.IntN(limit + 1)
			together.takeMany(r.Number(), busy)
			single.takeMany(r.Number(), busy)
		}
		n := rand.IntN(workers*limit + 2)
		picked, want := 0, 0
		for _, s := range together.PickMany(n) {
			require.Positive(t, s.Calls)
			picked += s.Calls
		}
		for range n {
			if _, ok := single.Pick(); ok {
				want++
			}
		}
		require.Equal(t, want, picked)
		require.Equal(t, inFlightOf(single, rows), inFlightOf(together, rows))
	}
}

// Other processes' calls are seen in the rows' loads alone.
func TestManyPicksLevelTheLoads(t *testing.T) {
	table := newTestTable(t, 3, 8)
	rows := []testRow{serving(t, table, 0, 1), serving(t, table, 1, 1), serving(t, table, 2, 1)}
	for i, load := range []int{3, 1, 6} {
		for range load {
			require.True(t, rows[i].Admit())
		}
	}
	c := NewChooser(table.Table)
	assert.ElementsMatch(t, []Share{{rows[0].Row, 2}, {rows[1].Row, 4}}, c.PickMany(6))
	for _, r := range rows[:2] {
		c.DoneMany(r.Row, c.InFlight(r.Row))
	}
	assert.ElementsMatch(t, []Share{{rows[0].Row, 4}, {rows[1].Row, 6}, {rows[2].Row, 1}}, c.PickMany(11))
}

func TestManyPicksOfNobody(t *testing.T) {
	table := newTestTable(t, 2, 4)
	r := serving(t, table, 0, 1)
	c := NewChooser(table.Table)
	assert.Empty(t, c.PickMany(0))
	r.SetAccepting(false)
	assert.Empty(t, c.PickMany(3))
	r.SetAccepting(true)
	assert.Equal(t, []Share{{r.Row, 3}}, c.PickMany(3))
	assert.Equal(t, []Share{{r.Row, 1}}, c.PickMany(3))
	assert.Empty(t, c.PickMany(3))
	c.DoneMany(r.Row, 4)
	assert.Zero(t, c.InFlight(r.Row))
	table.SetClosed()
	assert.Empty(t, c.PickMany(3))
}

func TestWhatCannotBeLevelledIsSpreadEvenly(t *testing.T) {
	const workers, picks = 4, 8_000
	table := newTestTable(t, workers, 4)
	for i := range workers {
		serving(t, table, i, 1)
	}
	c := NewChooser(table.Table)
	counts := make([]int, workers)
	for range picks {
		for _, s := range c.PickMany(workers + 1) {
			counts[s.Row.Index()] += s.Calls - 1
			c.DoneMany(s.Row, s.Calls)
		}
	}
	for i, n := range counts {
		// Six standard deviations of a fair choice among four.
		assert.InDelta(t, picks/workers, n, 235, "index %d of %v", i, counts)
	}
}

func TestManyPicksNeverExceedTheLimit(t *testing.T) {
	const limit, goroutines = 7, 8
	table := newTestTable(t, 1, limit)
	r := serving(t, table, 0, 1)
	c := NewChooser(table.Table)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range 2_000 {
				for _, s := range c.PickMany(3) {
					if n := c.InFlight(r.Row); n < 1 || n > limit {
						t.Errorf("%d in flight", n)
					}
					c.DoneMany(s.Row, s.Calls)
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, c.InFlight(r.Row))
}
