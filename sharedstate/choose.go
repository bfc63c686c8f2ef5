package sharedstate

import (
	"math/bits"
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

// leastLoaded returns the number of the row to take, -1 when none is free.
func (c *Chooser) leastLoaded() int {
	for {
		var least indexSet
		count := c.scan(&least)
		if count == 0 {
			return -1
		}
		k := 0
		if count > 1 {
			k = int(rand.Uint32N(uint32(count)))
		}
		// Its row may have gone since it was seen.
		if r, ok := c.t.Current(least.nth(k)); ok {
			return r.Number()
		}
	}
}

// scan finds the free indexes with the smallest load, and returns how many they are.
func (c *Chooser) scan(least *indexSet) (count int) {
	// Locals: the compiler reads fields again after every atomic load.
	current, hot, inFlight := c.t.current, c.t.hot, c.inFlight[:len(c.t.hot)]
	smallest := c.t.maxRunning - 1
	for base := 0; base < len(current); base += mapBits {
		var word uint64
		for i := range current[base:min(base+mapBits, len(current))] {
			n := int(current[base+i].Load()) - 1
			if uint(n) >= uint(len(hot)) {
				continue
			}
			// A row that does not accept gets the top bit set: more than any limit.
			load := hot[n].load.Load() ^ acceptingBit
			if load > smallest {
				continue
			}
			if load = max(load, uint32(inFlight[n].Load())); load > smallest {
				continue
			}
			if load < smallest {
				smallest, count, word = load, 0, 0
				clear(least[:base/mapBits])
			}
			word |= 1 << (i % mapBits)
			count++
		}
		least[base/mapBits] = word
	}
	return count
}

// An indexSet is a bitmap of indexes.
type indexSet [maxWorkers / mapBits]uint64

// nth returns the k-th index of the set, from 0; the set has more than k.
func (s *indexSet) nth(k int) int {
	for w, word := range s {
		n := bits.OnesCount64(word)
		if k < n {
			for range k {
				word &= word - 1
			}
			return w*mapBits + bits.TrailingZeros64(word)
		}
		k -= n
	}
	return 0
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
