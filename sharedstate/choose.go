package sharedstate

import (
	"math/rand/v2"
	"sync/atomic"
)

// A Chooser picks workers for the calls of one process: the smallest load among
// the current rows that accept and have load < MaxRunning, ties at random. Load
// is the larger of a row's running and this process's own calls in flight to it,
// since what is sent but not admitted yet cannot be seen in the table. Its
// methods are safe for concurrent use; it only reads the table.
type Chooser struct {
	t        *Table
	inFlight []atomic.Int32 // by row; of this process alone
	queue    queue
}

// NewChooser makes the one chooser of a process for t. It is to be closed before t is.
func NewChooser(t *Table) *Chooser {
	return &Chooser{t: t, inFlight: make([]atomic.Int32, t.Rows())}
}

// Pick chooses a row and takes one of our own in-flight counts on it, which Done
// gives back. ok is false when no worker is free or the pool is closed. It allocates nothing.
func (c *Chooser) Pick() (r Row, ok bool) {
	if c.t.Closed() {
		return Row{}, false
	}
	for {
		n := c.leastLoaded()
		if n < 0 {
			return Row{}, false
		}
		if c.take(n) {
			return Row{c.t, int32(n)}, true
		}
	}
}

// take fails when other goroutines filled the row since it was chosen.
func (c *Chooser) take(n int) bool {
	own := &c.inFlight[n]
	for {
		v := own.Load()
		if v >= int32(c.t.maxRunning) {
			return false
		}
		if own.CompareAndSwap(v, v+1) {
			return true
		}
	}
}

// leastLoaded returns the number of the row to take, -1 when none is free. It
// looks for the smallest key: the load above, a hash of the index under a new
// seed below, which makes each of the least loaded equally likely.
func (c *Chooser) leastLoaded() int {
	t := c.t
	seed := rand.Uint64()
	best, bestRow := uint64(t.maxRunning)<<32, -1
	for i := range t.current {
		n := t.current[i].Load() - 1
		if n >= uint32(len(t.hot)) || n >= uint32(len(c.inFlight)) {
			continue
		}
		// A row that does not accept gets the top bit set: more than any limit.
		load := t.hot[n].load.Load() ^ acceptingBit
		load = max(load, uint32(c.inFlight[n].Load()))
		seed += 0x9e3779b97f4a7c15
		key := uint64(load)<<32 | uint64(mix(seed))
		if key < best {
			best, bestRow = key, int(n)
		}
	}
	return bestRow
}

func mix(x uint64) uint32 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	return uint32(x >> 32)
}

// Done gives back what Pick or PickWait took on r, exactly once, and wakes this process's waiters.
func (c *Chooser) Done(r Row) {
	c.inFlight[r.n].Add(-1)
	if c.queue.waiting.Load() > 0 {
		c.serve()
	}
}

// InFlight returns this process's own calls in flight to a row.
func (c *Chooser) InFlight(r Row) int { return int(c.inFlight[r.n].Load()) }
