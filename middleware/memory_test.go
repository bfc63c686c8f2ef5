package middleware_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/middleware/storetest"
)

// A clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_900_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) (middleware.Store, func(time.Duration)) {
		c := newClock()
		return middleware.NewMemory(c.Now), c.Advance
	})
}

func TestMemoryEndsToTheNanosecond(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	m := middleware.NewMemory(c.Now)
	_, _, err := m.Acquire(ctx, "k", "a", 1, time.Second)
	require.NoError(t, err)
	_, _, err = m.Take(ctx, "k", 1, time.Second)
	require.NoError(t, err)
	_, err = m.Add(ctx, "k", time.Second)
	require.NoError(t, err)

	c.Advance(time.Second - 1)
	_, free, _ := m.Acquire(ctx, "k", "b", 1, time.Second)
	_, wait, _ := m.Take(ctx, "k", 1, time.Second)
	_, left, _ := m.Count(ctx, "k")
	assert.Equal(t, [3]time.Duration{1, 1, 1}, [3]time.Duration{free, wait, left})

	c.Advance(1)
	acquired, _, _ := m.Acquire(ctx, "k", "b", 1, time.Second)
	taken, _, _ := m.Take(ctx, "k", 1, time.Second)
	n, _, _ := m.Count(ctx, "k")
	assert.True(t, acquired)
	assert.True(t, taken)
	assert.Zero(t, n)
}

func TestMemoryTakesTheLongestTimes(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	m := middleware.NewMemory(c.Now)
	c.Advance(time.Hour)
	ok, _, err := m.Acquire(ctx, "k", "a", 1, math.MaxInt64)
	require.NoError(t, err)
	require.True(t, ok)
	ok, _, err = m.Acquire(ctx, "k", "b", 1, time.Second)
	require.NoError(t, err)
	assert.False(t, ok, "an end beyond the largest time must not lie in the past")
}

func TestMemoryDropsKeysThatNobodyUsesAgain(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := middleware.NewMemory(c.Now)
	for i := range 2_000 {
		useAll(t, m, fmt.Sprint(i))
		c.Advance(time.Second)
	}
	assert.LessOrEqual(t, middleware.Keys(m), 2*3*60, "a minute of them is alive; twice as many may be remembered")
}

func TestMemoryKeepsEveryKeyThatIsAlive(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := middleware.NewMemory(c.Now)
	for i := range 1000 {
		useAll(t, m, fmt.Sprint(i))
	}
	assert.Equal(t, 3000, middleware.Keys(m))
}

func useAll(t *testing.T, m *middleware.Memory, key string) {
	ctx := t.Context()
	_, _, err := m.Acquire(ctx, key, "a", 1, time.Minute)
	require.NoError(t, err)
	_, _, err = m.Take(ctx, key, 1, time.Minute)
	require.NoError(t, err)
	_, err = m.Add(ctx, key, time.Minute)
	require.NoError(t, err)
}
