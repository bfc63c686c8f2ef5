package storetest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
)

var takes = []contract{
	{"a window has max takes, then none until its first one is a window old", func(b *harness) {
		b.mustTake("k", 2, 3*unit)
		b.advance(unit)
		b.mustTake("k", 2, 3*unit)
		b.mustWait("k", 2, 3*unit, 2*unit)
		b.advance(2 * unit)
		b.mustTake("k", 2, 3*unit)
	}},
	{"a window slides: what came late in one counts in the next", func(b *harness) {
		b.mustTake("k", 2, 2*unit)
		b.advance(unit + unit/2)
		b.mustTake("k", 2, 2*unit)
		b.advance(unit / 2)
		b.mustTake("k", 2, 2*unit)
		b.mustWait("k", 2, 2*unit, unit+unit/2)
	}},
	{"a take over the limit does not count", func(b *harness) {
		b.mustTake("k", 1, unit)
		b.advance(unit / 2)
		b.mustWait("k", 1, unit, unit/2)
		b.advance(unit / 2)
		b.mustTake("k", 1, unit)
	}},
	{"a take succeeds when the wait has passed", func(b *harness) {
		b.mustTake("k", 1, unit)
		_, wait, err := b.store.Take(b.Context(), "k", 1, unit)
		assert.NoError(b, err)
		b.advance(wait)
		b.mustTake("k", 1, unit)
	}},
	{"each call looks back by its own max", func(b *harness) {
		b.mustTake("k", 3, 2*unit)
		b.mustTake("k", 3, 2*unit)
		b.mustWait("k", 2, 2*unit, 2*unit)
		b.mustTake("k", 3, 2*unit)
	}},
	{"another key has a window of its own", func(b *harness) {
		b.mustTake("k", 1, unit)
		b.mustTake("l", 1, unit)
	}},
	{"a max of 0 or less refuses every take", func(b *harness) {
		b.mustWait("k", 0, unit, unit)
		b.mustWait("k", -1, unit, unit)
		b.mustTake("k", 1, unit)
	}},
	{"of many takes at once exactly max succeed", func(b *harness) {
		const callers, max = 24, 7
		var through atomic.Int64
		together(callers, func(int) {
			ok, wait, err := b.store.Take(b.Context(), "k", max, time.Hour)
			switch {
			case !assert.NoError(b, err):
			case ok:
				through.Add(1)
			default:
				assert.Positive(b, wait)
			}
		})
		assert.EqualValues(b, max, through.Load())
	}},
}

var counts = []contract{
	{"a key without an add counts 0", func(b *harness) {
		b.mustCount("k", 0, 0)
	}},
	{"each add counts and restarts the window", func(b *harness) {
		assert.Equal(b, 1, b.add("k", 2*unit))
		b.advance(unit)
		b.mustCount("k", 1, unit)
		assert.Equal(b, 2, b.add("k", 2*unit))
		b.advance(unit)
		b.mustCount("k", 2, unit)
	}},
	{"after a quiet window the count starts again", func(b *harness) {
		assert.Equal(b, 1, b.add("k", unit))
		assert.Equal(b, 2, b.add("k", unit))
		b.advance(unit)
		b.mustCount("k", 0, 0)
		assert.Equal(b, 1, b.add("k", unit))
		b.mustCount("k", 1, unit)
	}},
	{"the last add says when the window ends", func(b *harness) {
		b.add("k", 3*unit)
		b.add("k", unit)
		b.mustCount("k", 2, unit)
	}},
	{"another key has a count of its own", func(b *harness) {
		b.add("k", unit)
		b.mustCount("l", 0, 0)
		assert.Equal(b, 1, b.add("l", unit))
	}},
	{"no add is lost when many come at once", func(b *harness) {
		const callers = 24
		var seen [callers + 1]atomic.Bool
		together(callers, func(int) {
			n, err := b.store.Add(b.Context(), "k", time.Hour)
			if assert.NoError(b, err) && assert.LessOrEqual(b, n, callers) {
				assert.False(b, seen[n].Swap(true), "two adds returned %d", n)
			}
		})
		b.mustCount("k", callers, time.Hour)
	}},
	{"leases, takes and counts under one key are apart", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.mustTake("k", 1, unit)
		assert.Equal(b, 1, b.add("k", unit))
		b.release("k", "a")
		b.mustWait("k", 1, unit, unit)
		b.mustCount("k", 1, unit)
	}},
}
