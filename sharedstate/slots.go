package sharedstate

import "github.com/taskd-go/task/tasktype"

// An Outcome says how a task that held a slot ended.
type Outcome uint8

const (
	Succeeded     Outcome = iota
	Failed                // even if the task's own OnException returned a result
	ExpiredInSlot         // its deadline passed before it ran: counts in fail and expired
)

// A WorkerRow is a row as its own worker writes it. Its methods are safe for concurrent use.
type WorkerRow struct{ Row }

// WorkerRow returns row n, 0 … Rows()-1, for the worker to which it belongs. It panics if t is open
// for reading alone.
func (t *Table) WorkerRow(n int) WorkerRow {
	if !t.writable {
		panic("sharedstate: WorkerRow of a table that is open for reading alone")
	}
	return WorkerRow{t.rowAt(n)}
}

// The order of the stores below keeps the sum true when the process is killed between two of them:
// accepted first and success or fail later, so that a task in between counts as lost; running last.

// SetAccepting says whether the worker takes calls. true wakes waiting callers.
func (r WorkerRow) SetAccepting(on bool) {
	if !on {
		r.hot().load.And(runningMask)
		return
	}
	r.hot().load.Or(acceptingBit)
	r.t.bump()
}

// SetCause says why the worker will be ended. Later causes change nothing.
func (r WorkerRow) SetCause(why tasktype.Reason) {
	r.hot().cause.CompareAndSwap(0, numberOf(why))
}

// Admit takes a slot and counts one accepted package if running < MaxRunning. Otherwise it counts a
// busy one and returns false.
func (r WorkerRow) Admit() bool {
	h := r.hot()
	for {
		load := h.load.Load()
		if load&runningMask >= r.t.maxRunning {
			h.counters[busy].Add(1)
			return false
		}
		if h.load.CompareAndSwap(load, load+1) {
			h.counters[accepted].Add(1)
			return true
		}
	}
}

// Expired counts a package whose deadline passed before it took a slot: it counts as accepted,
// failed and expired.
func (r WorkerRow) Expired() {
	h := r.hot()
	h.counters[accepted].Add(1)
	h.counters[expired].Add(1)
	h.counters[fail].Add(1)
}

// Release returns the slot of one Admit and counts the outcome. Call it exactly once for each
// Admit; without a slot taken it does nothing. If the worker was full, it wakes waiting callers.
func (r WorkerRow) Release(o Outcome) {
	h := r.hot()
	if h.load.Load()&runningMask == 0 {
		return
	}
	switch o {
	case Succeeded:
		h.counters[success].Add(1)
	case ExpiredInSlot:
		h.counters[expired].Add(1)
		h.counters[fail].Add(1)
	default:
		h.counters[fail].Add(1)
	}
	if left := h.load.Add(^uint32(0)) & runningMask; left == r.t.maxRunning-1 {
		r.t.bump()
	}
}
