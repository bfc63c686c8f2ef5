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
	return &Chooser{
		t:        t,
		inFlight: make([]atomic.Int32, t.Rows()),
		queue:    queue{recheck: defaultRecheck},
	}
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
		if c.takeMany(n, 1) == 1 {
			return Row{c.t, int32(n)}, true
		}
	}
}

// probes is how many rows are tried for an idle one before all are compared.
const probes = 2

// leastLoaded returns the number of the row to take, -1 when none is free. No
// load is smaller than none, so an idle row that is met by chance is as good as
// one found by comparing all, and each idle row is met equally often.
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

// loadOf returns the row of an index and its load; more than any limit when it takes no calls.
func (c *Chooser) loadOf(index int) (n int, load uint32) {
	r, ok := c.t.Current(index)
	if !ok {
		return -1, math.MaxUint32
	}
	return r.Number(), max(r.hot().load.Load()^acceptingBit, uint32(c.inFlight[r.n].Load()))
}

// scan compares all rows by a key: the load, and below it a hash under a new
// seed each time, which makes each of the least loaded equally likely.
func (c *Chooser) scan(seed uint64) int {
	// Locals: the compiler reads fields again after every atomic load.
	current, hot, inFlight := c.t.current, c.t.hot, c.inFlight[:len(c.t.hot)]
	least, row := uint64(c.t.maxRunning)<<32, -1
	for i := range current {
		n := int(current[i].Load()) - 1
		if uint(n) >= uint(len(hot)) {
			continue
		}
		// A row that does not accept gets the top bit set: more than any limit.
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

// Done gives back what Pick or PickWait took on r, exactly once, and wakes this process's waiters.
func (c *Chooser) Done(r Row) { c.DoneMany(r, 1) }

// DoneMany is n Dones at once.
func (c *Chooser) DoneMany(r Row, n int) {
	c.inFlight[r.n].Add(int32(-n))
	if c.queue.waiting.Load() > 0 {
		c.serve()
	}
}

// InFlight returns this process's own calls in flight to a row.
func (c *Chooser) InFlight(r Row) int { return int(c.inFlight[r.n].Load()) }
