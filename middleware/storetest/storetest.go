// Package storetest tests an implementation of middleware.Store: it checks the contract of the
// interface.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) (middleware.Store, func(time.Duration)) {
//			clock := time.Now()
//			store := newStore(t, func() time.Time { return clock })
//			return store, func(d time.Duration) { clock = clock.Add(d) }
//		})
//	}
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

// An Open returns an empty store, and a function that moves the store's clock forward. If the clock
// cannot be moved, the function sleeps instead. Run calls an Open once for each test. The tests run
// in parallel, and each calls its store from several goroutines.
type Open func(t *testing.T) (store middleware.Store, advance func(time.Duration))

// unit is the step of the tests. They allow for half a unit by which a real clock moves on between
// two calls.
const unit = 2 * time.Second

// Run tests the stores that open returns, in subtests of t.
func Run(t *testing.T, open Open) {
	for _, group := range [][]contract{leases, takes, counts, refusals} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				store, advance := open(t)
				c.test(&harness{T: t, store: store, advance: advance})
			})
		}
	}
}

type contract struct {
	name string
	test func(b *harness)
}

// A harness is one store under test, with calls that must not fail.
type harness struct {
	*testing.T
	store   middleware.Store
	advance func(time.Duration)
}

func (b *harness) acquire(key, owner string, slots int, ttl time.Duration) (ok bool, free time.Duration) {
	b.Helper()
	ok, free, err := b.store.Acquire(b.Context(), key, owner, slots, ttl)
	require.NoError(b, err)
	return ok, free
}

func (b *harness) mustAcquire(key, owner string, slots int, ttl time.Duration) {
	b.Helper()
	ok, free := b.acquire(key, owner, slots, ttl)
	require.True(b, ok, "%s should get a place under %s", owner, key)
	assert.Zero(b, free, "free beside ok")
}

// mustBeHeld checks that Acquire refuses a place and returns a free of about want.
func (b *harness) mustBeHeld(key string, slots int, want time.Duration) {
	b.Helper()
	ok, free := b.acquire(key, "another", slots, unit)
	require.False(b, ok, "all %d places under %s should be held", slots, key)
	b.about(want, free)
}

func (b *harness) renew(key, owner string, ttl time.Duration) (held bool) {
	b.Helper()
	held, err := b.store.Renew(b.Context(), key, owner, ttl)
	require.NoError(b, err)
	return held
}

func (b *harness) release(key, owner string) {
	b.Helper()
	require.NoError(b, b.store.Release(b.Context(), key, owner))
}

func (b *harness) mustTake(key string, max int, window time.Duration) {
	b.Helper()
	ok, wait, err := b.store.Take(b.Context(), key, max, window)
	require.NoError(b, err)
	require.True(b, ok, "take under %s", key)
	assert.Zero(b, wait, "wait beside ok")
}

func (b *harness) mustWait(key string, max int, window, want time.Duration) {
	b.Helper()
	ok, wait, err := b.store.Take(b.Context(), key, max, window)
	require.NoError(b, err)
	require.False(b, ok, "take under %s should be over the limit", key)
	b.about(want, wait)
}

func (b *harness) add(key string, window time.Duration) (n int) {
	b.Helper()
	n, err := b.store.Add(b.Context(), key, window)
	require.NoError(b, err)
	return n
}

func (b *harness) mustCount(key string, wantN int, wantLeft time.Duration) {
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

// about allows for the time by which a real clock has moved on. A time longer than want is wrong on
// any clock.
func (b *harness) about(want, got time.Duration) {
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

// holders counts the owners that got a place and have not left it, and the most at one time.
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
