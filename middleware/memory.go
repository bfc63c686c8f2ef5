package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Memory is a Store for the workers of one process; its locks and counts end with the process. It
// starts no goroutine: it drops what has ended when a key is used again, and all that has ended
// when the number of keys has doubled.
type Memory struct {
	clock func() time.Time
	start time.Time

	mu      sync.Mutex
	leases  map[string][]lease
	takes   map[string]takes
	counts  map[string]count
	sweepAt int // number of keys at which all that has ended is dropped
}

// An instant is the time since NewMemory. It compares quickly and does not follow changes of the
// wall clock.
type instant time.Duration

type lease struct {
	owner string
	end   instant
}

type takes struct {
	at  []instant // the newest max, oldest first
	end instant   // when the newest no longer matters
}

type count struct {
	n   int
	end instant
}

const minSweep = 64

// NewMemory returns an empty store whose clock is clock; nil means time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	return &Memory{
		clock:   clock,
		start:   clock(),
		leases:  map[string][]lease{},
		takes:   map[string]takes{},
		counts:  map[string]count{},
		sweepAt: minSweep,
	}
}

// Acquire implements Store.
func (m *Memory) Acquire(
	ctx context.Context, key, owner string, slots int, ttl time.Duration,
) (ok bool, free time.Duration, err error) {
	if err := check(ctx, key, "ttl", ttl); err != nil {
		return false, 0, err
	}
	if err := checkOwner(key, owner); err != nil {
		return false, 0, err
	}
	if slots < 1 {
		return false, 0, fmt.Errorf("key %q: slots %d must be at least 1", key, slots)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	live := m.live(key, now)
	if i := slices.IndexFunc(live, func(l lease) bool { return l.owner == owner }); i >= 0 {
		live[i].end = now.plus(ttl)
		return true, 0, nil
	}
	if len(live) >= slots {
		return false, time.Duration(endAfter(live, len(live)-slots) - now), nil
	}
	m.sweepIfLarge(now)
	m.leases[key] = append(live, lease{owner, now.plus(ttl)})
	return true, 0, nil
}

// Renew implements Store.
func (m *Memory) Renew(ctx context.Context, key, owner string, ttl time.Duration) (held bool, err error) {
	if err := check(ctx, key, "ttl", ttl); err != nil {
		return false, err
	}
	if err := checkOwner(key, owner); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	live := m.live(key, now)
	i := slices.IndexFunc(live, func(l lease) bool { return l.owner == owner })
	if i < 0 {
		return false, nil
	}
	live[i].end = now.plus(ttl)
	return true, nil
}

// Release implements Store.
func (m *Memory) Release(ctx context.Context, key, owner string) error {
	if err := checkKey(ctx, key); err != nil {
		return err
	}
	if err := checkOwner(key, owner); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLeases(key, slices.DeleteFunc(m.leases[key], func(l lease) bool { return l.owner == owner }))
	return nil
}

// Take implements Store.
func (m *Memory) Take(
	ctx context.Context, key string, max int, window time.Duration,
) (ok bool, wait time.Duration, err error) {
	if err := check(ctx, key, "window", window); err != nil {
		return false, 0, err
	}
	if max <= 0 {
		return false, window, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	at := m.takes[key].at
	if n := len(at); n >= max {
		if opens := at[n-max].plus(window); opens > now {
			return false, time.Duration(opens - now), nil
		}
		at = at[n-max+1:]
	}
	m.sweepIfLarge(now)
	m.takes[key] = takes{append(at, now), now.plus(window)}
	return true, 0, nil
}

// Add implements Store.
func (m *Memory) Add(ctx context.Context, key string, window time.Duration) (n int, err error) {
	if err := check(ctx, key, "window", window); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	c := m.counts[key]
	if c.end <= now {
		m.sweepIfLarge(now)
		c.n = 0
	}
	c.n++
	c.end = now.plus(window)
	m.counts[key] = c
	return c.n, nil
}

// Count implements Store.
func (m *Memory) Count(ctx context.Context, key string) (n int, left time.Duration, err error) {
	if err := checkKey(ctx, key); err != nil {
		return 0, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	c := m.counts[key]
	if c.end <= now {
		return 0, 0, nil
	}
	return c.n, time.Duration(c.end - now), nil
}

func check(ctx context.Context, key, name string, d time.Duration) error {
	if err := checkKey(ctx, key); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("key %q: %s %v must be positive", key, name, d)
	}
	return nil
}

func checkKey(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if key == "" {
		return errors.New("key must not be empty")
	}
	return nil
}

func checkOwner(key, owner string) error {
	if owner == "" {
		return fmt.Errorf("key %q: owner must not be empty", key)
	}
	return nil
}

func (m *Memory) now() instant { return instant(m.clock().Sub(m.start)) }

func (t instant) plus(d time.Duration) instant {
	if sum := t + instant(d); sum >= t {
		return sum
	}
	return math.MaxInt64
}

// live drops the leases of key that have ended and returns the others, which the caller may change
// in place.
func (m *Memory) live(key string, now instant) []lease {
	return m.setLeases(key, slices.DeleteFunc(m.leases[key], func(l lease) bool { return l.end <= now }))
}

func (m *Memory) setLeases(key string, ls []lease) []lease {
	if len(ls) == 0 {
		delete(m.leases, key)
	} else {
		m.leases[key] = ls
	}
	return ls
}

// endAfter returns when n+1 of the leases will have ended.
func endAfter(ls []lease, n int) instant {
	sorted := slices.SortedFunc(slices.Values(ls), func(a, b lease) int { return cmp.Compare(a.end, b.end) })
	return sorted[n].end
}

// sweepIfLarge bounds the memory of keys that are not used again, at a cost that is constant per
// call on average.
func (m *Memory) sweepIfLarge(now instant) {
	if m.size() < m.sweepAt {
		return
	}
	for key := range m.leases {
		m.live(key, now)
	}
	for key, t := range m.takes {
		if t.end <= now {
			delete(m.takes, key)
		}
	}
	for key, c := range m.counts {
		if c.end <= now {
			delete(m.counts, key)
		}
	}
	m.sweepAt = max(minSweep, 2*m.size())
}

func (m *Memory) size() int { return len(m.leases) + len(m.takes) + len(m.counts) }
