package queue

import (
	"sync"
	"time"
)

// A bell wakes the workers of the same Queue value when it pushes.
type bell struct {
	mu      sync.Mutex
	waiting map[chan<- struct{}]struct{}
}

func (b *bell) join(c chan<- struct{}) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[chan<- struct{}]struct{}{}
	}
	b.waiting[c] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, c)
	}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.waiting {
		select {
		case c <- struct{}{}:
		default: // it is awake
		}
	}
}

// debounce lets a key through once in an interval.
type debounce struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (d *debounce) allow(key string, every time.Duration) bool {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.last[key]) < every {
		return false
	}
	if d.last == nil {
		d.last = map[string]time.Time{}
	}
	d.last[key] = now
	return true
}

// forget takes the last allow of a key back.
func (d *debounce) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}
