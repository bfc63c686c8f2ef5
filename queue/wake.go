package queue

import "sync"

// wakeups wake the workers of a Queue value when that value pushes.
type wakeups struct {
	mu      sync.Mutex
	waiting map[chan<- struct{}]struct{}
}

func (w *wakeups) join(c chan<- struct{}) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[chan<- struct{}]struct{}{}
	}
	w.waiting[c] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, c)
	}
}

func (w *wakeups) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.waiting {
		signal(c)
	}
}
