package sharedstate

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A Share is how many of several calls a row gets.
type Share struct {
	Row   Row
	Calls int
}

// PickMany is Pick for n calls at once: it levels the loads, and takes an in-flight count for
// each call. What it returns are fewer than n when fewer are free.
func (c *Chooser) PickMany(n int) []Share {
	var shares []Share
	var loads []rowLoad
	for n > 0 && !c.t.Closed() {
		loads = c.freeRows(loads[:0])
		if len(loads) == 0 {
			break
		}
		level, more := levelOf(loads, n, c.t.maxRunning)
		for i, l := range loads {
			calls := int(level) - int(l.load)
			if i < more {
				calls++
			}
			if calls = c.takeMany(l.row, calls); calls > 0 {
				shares = append(shares, Share{Row{c.t, int32(l.row)}, calls})
				n -= calls
			}
		}
	}
	return shares
}

type rowLoad struct {
	load uint32
	tie  uint32 // at random
	row  int
}

// freeRows appends the rows that take calls, the least loaded first, ties at random.
func (c *Chooser) freeRows(loads []rowLoad) []rowLoad {
	for i := range c.t.current {
		if n, load := c.loadOf(i); load < c.t.maxRunning {
			loads = append(loads, rowLoad{load, rand.Uint32(), n})
		}
	}
	slices.SortFunc(loads, func(a, b rowLoad) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.tie, b.tie))
	})
	return loads
}

// levelOf returns the load to which n calls raise those below it, and how many of the first get one call more.
func levelOf(loads []rowLoad, n int, limit uint32) (level uint32, more int) {
	sum := n // calls on the first k rows when all n are theirs
	for k := 1; ; k++ {
		sum += int(loads[k-1].load)
		if k == len(loads) || sum <= k*int(loads[k].load) {
			if sum >= k*int(limit) {
				return limit, 0
			}
			return uint32(sum / k), sum % k
		}
	}
}

// takeMany takes up to n in-flight counts on a row: fewer when its limit is reached.
func (c *Chooser) takeMany(row, n int) int {
	own := &c.inFlight[row]
	for {
		v := own.Load()
		n = min(n, int(c.t.maxRunning)-int(v))
		if n <= 0 {
			return 0
		}
		if own.CompareAndSwap(v, v+int32(n)) {
			return n
		}
	}
}
