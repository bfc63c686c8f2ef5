// Package storetest is the contract of middleware.Store as a test, for every implementation to pass.
package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/middleware"
)

// Open returns a store with nothing in it, and a function that moves the store's clock forward, or waits that
// long where a clock cannot be moved. It is called once for each test, from tests that run in parallel.
type Open func(t *testing.T) (store middleware.Store, advance func(time.Duration))

// unit is the step of the tests: they see a difference of half a unit, so that a real clock may run on between
// two calls.
const unit = 2 * time.Second

// Run runs the whole contract as subtests of t.
func Run(t *testing.T, open Open) {
	for _, group := range [][]contract{leases, takes, counts, refusals} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				store, advance := open(t)
				c.test(&bench{T: t, store: store, advance: advance})
			})
		}
	}
}

type contract struct {
	name string
	test func(b *bench)
}

// A bench is one store under test, with calls that must not fail.
type bench struct {
	*testing.T
	store   middleware.Store
	advance func(time.Duration)
}

func (b *bench) acquire(key, owner string, slots int, ttl time.Duration) (ok bool, free time.Duration) {
	b.Helper()
	ok, free, err := b.store.Acquire(b.Context(), key, owner, slots, ttl)
	require.NoError(b, err)
	return ok, free
}

func (b *bench) mustAcquire(key, owner string, slots int, ttl time.Duration) {
	b.Helper()
	ok, free := b.acquire(key, owner, slots, ttl)
	require.True(b, ok, "%s should get a place under %s", owner, key)
	assert.Zero(b, free, "free beside ok")
}

// mustBeHeld asks for a place, is refused, and finds free at about want.
func (b *bench) mustBeHeld(key string, slots int, want time.Duration) {
	b.Helper()
	ok, free := b.acquire(key, "another", slots, unit)
	require.False(b, ok, "all %d places under %s should be held", slots, key)
	b.about(want, free)
}

func (b *bench) renew(key, owner string, ttl time.Duration) (held bool) {
	b.Helper()
	held, err := b.store.Renew(b.Context(), key, owner, ttl)
	require.NoError(b, err)
	return held
}

func (b *bench) release(key, owner string) {
	b.Helper()
	require.NoError(b, b.store.Release(b.Context(), key, owner))
}

func (b *bench) mustTake(key string, max int, window time.Duration) {
	b.Helper()
	ok, wait, err := b.store.Take(b.Context(), key, max, window)
	require.NoError(b, err)
	require.True(b, ok, "take under %s", key)
	assert.Zero(b, wait, "wait beside ok")
}

func (b *bench) mustWait(key string, max int, window, want time.Duration) {
	b.Helper()
	ok, wait, err := b.store.Take(b.Context(), key, max, window)
	require.NoError(b, err)
	require.False(b, ok, "take under %s should be over the limit", key)
	b.about(want, wait)
}

func (b *bench) add(key string, window time.Duration) (n int) {
	b.Helper()
	n, err := b.store.Add(b.Context(), key, window)
	require.NoError(b, err)
	return n
}

func (b *bench) mustCount(key string, wantN int, wantLeft time.Duration) {
	b.Helper()
	n, left, err := b.store.Count(b.Context(), key)
	require.NoError(b, err)
	assert.Equal(b, wantN, n, "count of %s", key)
	if wantN == 0 {
		assert.Zero(b, left, "time left of nothing")
		return
	}
	b.about(wantLeft, left)
}

// about allows for what a real clock ran on; a time that is too long is wrong on any clock.
func (b *bench) about(want, got time.Duration) {
	b.Helper()
	assert.Positive(b, got)
	assert.LessOrEqual(b, got, want)
	assert.Greater(b, got, want-unit/2)
}

// together calls f from n goroutines at once and waits for them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// holders counts who believes to hold a place now, and remembers the largest number.
type holders struct{ now, most atomic.Int64 }

func (h *holders) enter() {
	n := h.now.Add(1)
	for {
		most := h.most.Load()
		if n <= most || h.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (h *holders) leave() { h.now.Add(-1) }

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func owner(i, round int) string { return fmt.Sprintf("owner-%d-%d", i, round) }
