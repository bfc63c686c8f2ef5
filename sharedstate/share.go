package sharedstate

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A Share says how many of several calls a row gets.
type Share struct {
	Row   Row
	Calls int
}

// PickMany picks rows for n calls at once so that it levels the loads, and counts each call in
// flight until Done or DoneMany. The shares add up to less than n if fewer slots are free.
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
	tie  uint32 // random
	row  int
}

// freeRows appends the rows that take calls, the least loaded first, equals in random order.
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

// levelOf returns the load to which n calls raise the rows below it, and how many of the first rows
// get one call more.
func levelOf(loads []rowLoad, n int, limit uint32) (level uint32, more int) {
	sum := n // calls on the first k rows if they get all n
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

// takeMany counts up to n calls in flight to a row, fewer if it reaches its limit, and returns how
// many.
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
