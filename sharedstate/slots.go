package sharedstate

// An Outcome says how a task that held a slot ended.
type Outcome uint8

const (
	Succeeded     Outcome = iota
	Failed                // also when the task's own handler answered for it
	ExpiredInSlot         // its deadline passed before it ran: counts in fail and expired
)

// The order of the stores below is what keeps the sum true when the process is
// killed between two of them: accepted first and success or fail later, so that
// what is neither yet is lost; running last.

// SetAccepting says whether the worker takes calls; on wakes waiters. The worker's own.
func (r Row) SetAccepting(on bool) {
	if !on {
		r.hot().load.And(runningMask)
		return
	}
	r.hot().load.Or(acceptingBit)
	r.t.bump()
}

// Admit takes a slot if running < MaxRunning: accepted and running grow by one. Otherwise busy does. The worker's own.
func (r Row) Admit() bool {
	h := r.hot()
	for {
		load := h.load.Load()
		if load&runningMask >= r.t.maxRunning {
			h.busy.Add(1)
			return false
		}
		if h.load.CompareAndSwap(load, load+1) {
			h.accepted.Add(1)
			return true
		}
	}
}

// Expired counts a package whose deadline had passed before it took a slot:
// accepted, fail and expired grow by one. The worker's own.
func (r Row) Expired() {
	h := r.hot()
	h.accepted.Add(1)
	h.expired.Add(1)
	h.fail.Add(1)
}

// Release gives back the slot of one Admit, exactly once, with the outcome. When
// the worker was full before it, waiters are woken. Without a slot taken it does nothing. The worker's own.
func (r Row) Release(o Outcome) {
	h := r.hot()
	if h.load.Load()&runningMask == 0 {
		return
	}
	switch o {
	case Succeeded:
		h.success.Add(1)
	case ExpiredInSlot:
		h.expired.Add(1)
		h.fail.Add(1)
	default:
		h.fail.Add(1)
	}
	if left := h.load.Add(^uint32(0)) & runningMask; left == r.t.maxRunning-1 {
		r.t.bump()
	}
}
