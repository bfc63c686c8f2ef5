package props

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/taskd-go/task/middleware"
)

// A model is what a store must look like from outside, in the simplest form: it forgets nothing.
type model struct {
	now    time.Time
	leases map[string]map[string]time.Time // key, owner: end
	takes  map[string][]time.Time
	counts map[string]counted
}

type counted struct {
	n   int
	end time.Time
}

func newModel() *model {
	return &model{
		now:    time.Unix(1_900_000_000, 0),
		leases: map[string]map[string]time.Time{},
		takes:  map[string][]time.Time{},
		counts: map[string]counted{},
	}
}

// ends returns the ends of the live leases under key, the first first.
func (m *model) ends(key string) (ends []time.Time) {
	for _, end := range m.leases[key] {
		if end.After(m.now) {
			ends = append(ends, end)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends
}

func (m *model) holds(key, owner string) bool { return m.leases[key][owner].After(m.now) }

func (m *model) lease(key, owner string, ttl time.Duration) {
	if m.leases[key] == nil {
		m.leases[key] = map[string]time.Time{}
	}
	m.leases[key][owner] = m.now.Add(ttl)
}

func (m *model) acquire(key, owner string, slots int, ttl time.Duration) (ok bool, free time.Duration) {
	ends := m.ends(key)
	if !m.holds(key, owner) && len(ends) >= slots {
		return false, ends[len(ends)-slots].Sub(m.now)
	}
	m.lease(key, owner, ttl)
	return true, 0
}

func (m *model) renew(key, owner string, ttl time.Duration) bool {
	if !m.holds(key, owner) {
		return false
	}
	m.lease(key, owner, ttl)
	return true
}

func (m *model) take(key string, max int, window time.Duration) (ok bool, wait time.Duration) {
	if max <= 0 {
		return false, window
	}
	var inWindow []time.Time
	for _, at := range m.takes[key] {
		if at.After(m.now.Add(-window)) {
			inWindow = append(inWindow, at)
		}
	}
	if len(inWindow) >= max {
		return false, inWindow[len(inWindow)-max].Add(window).Sub(m.now)
	}
	m.takes[key] = append(m.takes[key], m.now)
	return true, 0
}

func (m *model) add(key string, window time.Duration) int {
	n, _ := m.count(key)
	m.counts[key] = counted{n + 1, m.now.Add(window)}
	return n + 1
}

func (m *model) count(key string) (n int, left time.Duration) {
	c := m.counts[key]
	if !c.end.After(m.now) {
		return 0, 0
	}
	return c.n, c.end.Sub(m.now)
}

var (
	keys   = rapid.SampledFrom([]string{"a", "b", "c"})
	owners = rapid.SampledFrom([]string{"one", "two", "three", "four", "five", "six"})
	// Few and even times, so that ends are met exactly as often as they are missed.
	times = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds")) * time.Second
	})
)

// A limit is max per window, the same in all takes under one key.
type limit struct {
	max    int
	window time.Duration
}

func TestMemoryIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, ctx := newModel(), context.Background()
		s := middleware.NewMemory(func() time.Time { return m.now })
		limits := map[string]limit{}
		for _, key := range []string{"a", "b", "c"} {
			limits[key] = limit{rapid.IntRange(-1, 4).Draw(t, "max of "+key), times.Draw(t, "window of "+key)}
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				key, owner, ttl := keys.Draw(t, "key"), owners.Draw(t, "owner"), times.Draw(t, "ttl")
				slots := rapid.IntRange(1, 4).Draw(t, "slots")
				ok, free, err := s.Acquire(ctx, key, owner, slots, ttl)
				require.NoError(t, err)
				wantOK, wantFree := m.acquire(key, owner, slots, ttl)
				assert.Equal(t, wantOK, ok)
				assert.Equal(t, wantFree, free)
			},
			"renew": func(t *rapid.T) {
				key, owner, ttl := keys.Draw(t, "key"), owners.Draw(t, "owner"), times.Draw(t, "ttl")
				held, err := s.Renew(ctx, key, owner, ttl)
				require.NoError(t, err)
				assert.Equal(t, m.renew(key, owner, ttl), held)
			},
			"release": func(t *rapid.T) {
				key, owner := keys.Draw(t, "key"), owners.Draw(t, "owner")
				require.NoError(t, s.Release(ctx, key, owner))
				delete(m.leases[key], owner)
			},
			"take": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				l := limits[key]
				ok, wait, err := s.Take(ctx, key, l.max, l.window)
				require.NoError(t, err)
				wantOK, wantWait := m.take(key, l.max, l.window)
				assert.Equal(t, wantOK, ok)
				assert.Equal(t, wantWait, wait)
			},
			"add": func(t *rapid.T) {
				key, window := keys.Draw(t, "key"), times.Draw(t, "window")
				n, err := s.Add(ctx, key, window)
				require.NoError(t, err)
				assert.Equal(t, m.add(key, window), n)
			},
			"count": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				n, left, err := s.Count(ctx, key)
				require.NoError(t, err)
				wantN, wantLeft := m.count(key)
				assert.Equal(t, wantN, n)
				assert.Equal(t, wantLeft, left)
			},
			"time passes": func(t *rapid.T) { m.now = m.now.Add(times.Draw(t, "d")) },
		})
	})
}

// Goroutines with random scripts: whatever the interleaving, who was told to hold a place is one of at most slots,
// and a window lets exactly max through. Releases come twice, and from owners that hold nothing.
func TestMemoryUnderRandomInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots, max = 2, 5
		var holders, most, through atomic.Int64
		s, ctx := middleware.NewMemory(nil), context.Background()
		script := rapid.SliceOfN(rapid.SampledFrom([]string{"hold", "take", "stray release", "stray renew"}), 1, 20)
		var all sync.WaitGroup
		start := make(chan struct{})
		takes := 0
		for _, owner := range []string{"one", "two", "three", "four"} {
			steps := script.Draw(t, owner)
			for _, step := range steps {
				if step == "take" {
					takes++
				}
			}
			all.Go(func() {
				<-start
				for _, step := range steps {
					switch step {
					case "hold":
						ok, _, err := s.Acquire(ctx, "k", owner, slots, time.Hour)
						if assert.NoError(t, err) && ok {
							raise(&most, holders.Add(1))
							holders.Add(-1)
							assert.NoError(t, s.Release(ctx, "k", owner))
							assert.NoError(t, s.Release(ctx, "k", owner))
						}
					case "take":
						ok, _, err := s.Take(ctx, "k", max, time.Hour)
						if assert.NoError(t, err) && ok {
							through.Add(1)
						}
					case "stray release":
						assert.NoError(t, s.Release(ctx, "k", owner))
					case "stray renew":
						held, err := s.Renew(ctx, "k", owner, time.Hour)
						assert.NoError(t, err)
						assert.False(t, held)
					}
				}
			})
		}
		close(start)
		all.Wait()
		assert.LessOrEqual(t, most.Load(), int64(slots))
		assert.EqualValues(t, min(takes, max), through.Load())
	})
}

func raise(most *atomic.Int64, n int64) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}
