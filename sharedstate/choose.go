package sharedstate

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// A Chooser picks workers for the calls of one process: the row with the smallest load among the
// current rows that accept and have load < MaxRunning, at random among equals. The load is the
// larger of the row's running tasks and this process's own calls in flight to it, because the table
// does not show calls that no worker has admitted yet. Its methods are safe for concurrent use. It
// only reads the table.
type Chooser struct {
	t        *Table
	inFlight []atomic.Int32 // this process's calls, by row
	queue    queue
}

// NewChooser makes the one Chooser of a process for t. Close it before t.
func NewChooser(t *Table) *Chooser {
	return &Chooser{
		t:        t,
		inFlight: make([]atomic.Int32, t.Rows()),
		queue:    queue{recheck: defaultRecheck},
	}
}

// Pick chooses a row and counts one call in flight to it until Done. ok is false if no worker is
// free or the pool is closed. Pick allocates nothing.
func (c *Chooser) Pick() (r Row, ok bool) {
	if c.t.Closed() {
		return Row{}, false
	}
	for {
		n := c.leastLoaded()
		if n < 0 {
			return Row{}, false
		}
		if c.takeMany(n, 1) == 1 {
			return Row{c.t, int32(n)}, true
		}
	}
}

// probes is how many rows Pick tries for an idle one before it compares all.
const probes = 2

// leastLoaded returns the number of the row to take, -1 if none is free. No load is smaller than 0,
// so an idle row that a probe finds is as good as one found by comparing all, and probes find each
// idle row equally often.
func (c *Chooser) leastLoaded() int {
	random := rand.Uint64()
	for range probes {
		i := (random >> 32 * uint64(len(c.t.current))) >> 32
		if n, load := c.loadOf(int(i)); load == 0 {
			return n
		}
		random = random<<32 | random>>32
	}
	return c.scan(random)
}

// loadOf returns the row of an index and its load, which is above any limit if the row takes no
// calls.
func (c *Chooser) loadOf(index int) (n int, load uint32) {
	r, ok := c.t.Current(index)
	if !ok {
		return -1, math.MaxUint32
	}
	return r.Number(), max(r.hot().load.Load()^acceptingBit, uint32(c.inFlight[r.n].Load()))
}

// scan compares all rows by a key of the load and, below it, a hash with a new seed each time. So
// each of the least loaded rows is equally likely.
func (c *Chooser) scan(seed uint64) int {
	// Local variables: the compiler reads fields again after every atomic load.
	current, hot, inFlight := c.t.current, c.t.hot, c.inFlight[:len(c.t.hot)]
	least, row := uint64(c.t.maxRunning)<<32, -1
	for i := range current {
		n := int(current[i].Load()) - 1
		if uint(n) >= uint(len(hot)) {
			continue
		}
		// A row that does not accept gets the top bit set, which is above any limit.
		load := uint64(hot[n].load.Load() ^ acceptingBit)
		if load > least>>32 {
			continue
		}
		load = max(load, uint64(inFlight[n].Load()))
		seed += 0x9e3779b97f4a7c15
		if key := load<<32 | seed*seed>>32; key < least {
			least, row = key, n
		}
	}
	return row
}

// Done ends one call that Pick or PickWait counted on r. It wakes waiting callers of this process.
// Call it exactly once for each Pick.
func (c *Chooser) Done(r Row) { c.DoneMany(r, 1) }

// DoneMany does what n calls of Done do.
func (c *Chooser) DoneMany(r Row, n int) {
	c.inFlight[r.n].Add(int32(-n))
	if c.queue.waiting.Load() > 0 {
		c.serve()
	}
}

// InFlight returns this process's own calls in flight to a row.
func (c *Chooser) InFlight(r Row) int { return int(c.inFlight[r.n].Load()) }
