package sharedstate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// A queue holds the callers of one process that wait for a worker, in order. While
// it is not empty one watcher sleeps on the table for all of them.
type queue struct {
	waiting atomic.Int32 // len(waiters), for those who only look

	mu       sync.Mutex
	waiters  []*waiter
	watching bool
	closed   bool
	watchers sync.WaitGroup
	recheck  time.Duration
}

// A waiter gets its row through a channel that holds one, so that serving never blocks.
type waiter struct{ row chan Row }

// defaultRecheck bounds a sleep on the table: after it the watcher ends if nobody waits
// any more, and a wake-up that a dying process owed is made up for.
const defaultRecheck = 100 * time.Millisecond

// PickWait is Pick, but waits up to d for a free worker; callers are served in
// order. ok is false when ctx or d ended first, or the pool or the chooser closed. However many
// callers wait, one thread of the process sleeps on the table, and none soon after the last has left.
func (c *Chooser) PickWait(ctx context.Context, d time.Duration) (r Row, ok bool) {
	if c.queue.waiting.Load() == 0 {
		if r, ok := c.Pick(); ok {
			return r, true
		}
	}
	if d <= 0 || ctx.Err() != nil {
		return Row{}, false
	}
	w := &waiter{row: make(chan Row, 1)}
	if !c.enqueue(w) {
		return Row{}, false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case r, ok = <-w.row:
		return r, ok
	case <-ctx.Done():
	case <-timer.C:
	}
	c.leave(w)
	// It may have been served at the last moment; a row that was taken is not thrown away.
	r, ok = <-w.row
	return r, ok
}

// Close ends all waiting and waits until the watcher is gone. Picks after it
// still work, PickWaits do not wait.
func (c *Chooser) Close() {
	q := &c.queue
	q.mu.Lock()
	q.closed = true
	q.dismiss()
	q.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		q.watchers.Wait()
		close(gone)
	}()
	for {
		// Again and again: the watcher may be just before its sleep.
		sys.FutexWake(c.t.wakeWord())
		select {
		case <-gone:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *Chooser) enqueue(w *waiter) bool {
	q := &c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || c.t.Closed() {
		return false
	}
	q.waiters = append(q.waiters, w)
	q.waiting.Add(1)
	c.serveLocked()
	if len(q.waiters) > 0 && !q.watching {
		q.watching = true
		q.watchers.Go(c.watch)
	}
	return true
}

// watch serves waiters whenever the table says that a worker may be free. The
// word is read before choosing: what becomes free after that ends the sleep at once.
func (c *Chooser) watch() {
	q := &c.queue
	for {
		seen := c.t.wake.Load()
		q.mu.Lock()
		c.serveLocked()
		if len(q.waiters) == 0 {
			q.watching = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		sys.FutexWait(c.t.wakeWord(), seen, q.recheck)
	}
}

func (c *Chooser) serve() {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.serveLocked()
}

// serveLocked gives rows to the first waiters as long as there are both.
func (c *Chooser) serveLocked() {
	q := &c.queue
	if c.t.Closed() {
		q.dismiss()
		return
	}
	for len(q.waiters) > 0 {
		r, ok := c.Pick()
		if !ok {
			return
		}
		w := q.waiters[0]
		q.waiters = slices.Delete(q.waiters, 0, 1)
		q.waiting.Add(-1)
		w.row <- r
		close(w.row)
	}
}

// leave takes a waiter that gave up out of the queue; one that was served is in it no more.
func (c *Chooser) leave(w *waiter) {
	q := &c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		q.waiting.Add(-1)
		close(w.row)
	}
}

// dismiss sends all waiters away without a row. The caller holds mu.
func (q *queue) dismiss() {
	for _, w := range q.waiters {
		close(w.row)
	}
	q.waiting.Store(0)
	q.waiters = nil
}
