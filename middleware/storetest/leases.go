package storetest

import (
	"runtime"
	"time"

	"github.com/stretchr/testify/assert"
)

var leases = []contract{
	{"a held place is refused, with the time until its lease ends", func(b *harness) {
		b.mustAcquire("k", "a", 1, 3*unit)
		b.mustBeHeld("k", 1, 3*unit)
		b.advance(unit)
		b.mustBeHeld("k", 1, 2*unit)
	}},
	{"another key is another place", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.mustAcquire("l", "b", 1, unit)
	}},
	{"a lease ends when its ttl has passed", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.advance(unit / 2)
		b.mustBeHeld("k", 1, unit/2)
		b.advance(unit / 2)
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"a place is free when the time until it is free has passed", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		_, free := b.acquire("k", "b", 1, unit)
		b.advance(free)
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"a refused call leaves nothing behind", func(b *harness) {
		b.mustAcquire("k", "a", 1, 2*unit)
		b.mustBeHeld("k", 1, 2*unit)
		b.release("k", "a")
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"as many places as slots, free when the first of them ends", func(b *harness) {
		b.mustAcquire("k", "a", 3, 3*unit)
		b.mustAcquire("k", "b", 3, unit)
		b.mustAcquire("k", "c", 3, 2*unit)
		b.mustBeHeld("k", 3, unit)
		b.release("k", "c")
		b.mustAcquire("k", "d", 3, unit)
	}},
	{"fewer slots than leases wait for as many to end", func(b *harness) {
		b.mustAcquire("k", "a", 3, 3*unit)
		b.mustAcquire("k", "b", 3, unit)
		b.mustAcquire("k", "c", 3, 2*unit)
		b.mustBeHeld("k", 2, 2*unit)
		b.mustBeHeld("k", 1, 3*unit)
	}},
	{"an owner that asks again keeps its one place with the new ttl", func(b *harness) {
		b.mustAcquire("k", "a", 2, unit)
		b.mustAcquire("k", "a", 2, 3*unit)
		b.mustAcquire("k", "b", 2, 3*unit)
		b.mustBeHeld("k", 2, 3*unit)
		b.mustAcquire("k", "a", 1, 2*unit)
		b.release("k", "a")
		b.mustAcquire("k", "c", 2, unit)
	}},
	{"a renewed lease ends its ttl after the renewal", func(b *harness) {
		b.mustAcquire("k", "a", 1, 2*unit)
		b.advance(unit)
		assert.True(b, b.renew("k", "a", 2*unit))
		b.advance(unit)
		b.mustBeHeld("k", 1, unit)
		b.advance(unit)
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"a lease that has ended is not renewed, even if its place is free", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.advance(unit)
		assert.False(b, b.renew("k", "a", unit))
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"an owner without a lease renews nothing", func(b *harness) {
		assert.False(b, b.renew("k", "a", unit))
		b.mustAcquire("k", "b", 1, 2*unit)
		assert.False(b, b.renew("k", "a", 3*unit))
		b.mustBeHeld("k", 1, 2*unit)
	}},
	{"a released lease is not renewed", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.release("k", "a")
		assert.False(b, b.renew("k", "a", unit))
		b.mustAcquire("k", "b", 1, unit)
	}},
	{"an owner without a lease releases nothing", func(b *harness) {
		b.release("k", "a")
		b.mustAcquire("k", "b", 1, unit)
		b.release("k", "a")
		b.release("l", "b")
		b.mustBeHeld("k", 1, unit)
	}},
	{"a late or second release leaves the next owner's lease", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		b.release("k", "a")
		b.mustAcquire("k", "b", 1, unit)
		b.release("k", "a")
		b.mustBeHeld("k", 1, unit)
		b.advance(unit)
		b.mustAcquire("k", "c", 1, unit)
		b.release("k", "b")
		b.mustBeHeld("k", 1, unit)
	}},
	{"there are never more holders than slots", func(b *harness) {
		const callers, slots, rounds = 12, 3, 25
		var h holders
		together(callers, func(i int) {
			for round := range rounds {
				me := owner(i, round)
				ok, _, err := b.store.Acquire(b.Context(), "k", me, slots, time.Hour)
				if !assert.NoError(b, err) || !ok {
					continue
				}
				h.enter()
				runtime.Gosched()
				h.leave()
				assert.NoError(b, b.store.Release(b.Context(), "k", me))
				assert.NoError(b, b.store.Release(b.Context(), "k", me))
			}
		})
		assert.LessOrEqual(b, h.most.Load(), int64(slots))
		for i := range slots {
			b.mustAcquire("k", owner(i, rounds), slots, unit)
		}
	}},
	{"of many at once exactly as many as slots get a place", func(b *harness) {
		const callers, slots = 12, 3
		var h holders
		together(callers, func(i int) {
			ok, _, err := b.store.Acquire(b.Context(), "k", owner(i, 0), slots, time.Hour)
			if assert.NoError(b, err) && ok {
				h.enter()
			}
		})
		assert.EqualValues(b, slots, h.now.Load())
	}},
}
