package sharedstate

import (
	"math"
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

// leastLoaded returns the number of the row to take, -1 when none is free. Of
// equal loads the smallest hash wins, under a new seed each time, which makes
// each of the least loaded equally likely.
func (c *Chooser) leastLoaded() int {
	// Locals: the compiler reads fields again after every atomic load.
	current, hot, inFlight := c.t.current, c.t.hot, c.inFlight[:len(c.t.hot)]
	seed := rand.Uint64()
	least, leastHash, row := c.t.maxRunning-1, uint32(math.MaxUint32), -1
	for i := range current {
		n := int(current[i].Load()) - 1
		if uint(n) >= uint(len(hot)) {
			continue
		}
		// A row that does not accept gets the top bit set: more than any limit.
		load := hot[n].load.Load() ^ acceptingBit
		load = max(load, uint32(inFlight[n].Load()))
		if load > least {
			continue
		}
		hash := mix(seed + uint64(i)*0x9e3779b97f4a7c15)
		if load < least || hash <= leastHash {
			least, leastHash, row = load, hash, n
		}
	}
	return row
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
