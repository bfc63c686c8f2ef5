package sharedstate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/shm"
)

// A queue holds the callers of one process that wait for a worker, in order. While it is not empty,
// one goroutine, the watcher, sleeps on the table's futex for all of them.
type queue struct {
	waiting atomic.Int32 // len(waiters), for readers without mu

	mu       sync.Mutex
	waiters  []*waiter
	watching bool
	closed   bool
	watchers sync.WaitGroup
	recheck  time.Duration
}

// A waiter gets its row through a channel of capacity 1, so that serving never blocks.
type waiter struct{ row chan Row }

// defaultRecheck bounds one sleep on the futex. After it the watcher ends if no caller waits. It
// also makes up for the wake-up of a process that died before it could send it.
const defaultRecheck = 100 * time.Millisecond

// PickWait does what Pick does, but waits up to d for a free worker. Waiting callers get rows in
// the order of their calls. ok is false if ctx or d ended first, or if the pool or the Chooser is
// closed. However many callers wait, one thread of the process sleeps on the futex.
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
	// The caller may have got a row at the last moment; use it.
	r, ok = <-w.row
	return r, ok
}

// Close ends all waiting and waits until the watcher has ended. After it Pick still works, and
// PickWait does not wait.
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
		// Again and again, because the watcher may be just before its sleep.
		shm.FutexWake(c.t.wakeWord())
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

// watch serves waiters whenever a worker may have become free. It reads the word before it chooses,
// so a worker that becomes free after that ends the sleep at once.
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
		shm.FutexWait(c.t.wakeWord(), seen, q.recheck)
	}
}

func (c *Chooser) serve() {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.serveLocked()
}

// serveLocked gives rows to the first waiters while there are rows and waiters. The caller holds
// mu.
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

// leave removes a waiter that gave up, unless it has got a row.
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

// dismiss ends the waiting of all waiters without a row. The caller holds mu.
func (q *queue) dismiss() {
	for _, w := range q.waiters {
		close(w.row)
	}
	q.waiting.Store(0)
	q.waiters = nil
}
