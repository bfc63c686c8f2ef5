package sharedstate

import (
	"errors"
	"slices"
	"time"

	"github.com/taskd-go/task/tasktype"
)

// ErrNoRow says that all rows are taken: too many generations live at once.
var ErrNoRow = errors.New("no free row in the table")

// A Row is one worker process's line. The zero Row is none. A row is used again
// by a later process, of any index, after Free; a Row value does not notice.
type Row struct {
	t *Table
	n int32
}

// An End says how a worker process ended.
type End struct {
	Reason tasktype.Reason // one of its list
	Signal int             // 0: none
	Code   int
}

// reasons are in the order of their numbers in the table, which begin at 1.
var reasons = tasktype.Reasons()

func numberOf(r tasktype.Reason) uint32 { return uint32(slices.Index(reasons, r) + 1) }

// reasonOf returns "" for a number that this program does not know.
func reasonOf(n uint32) tasktype.Reason {
	if n == 0 || n > uint32(len(reasons)) {
		return ""
	}
	return reasons[n-1]
}

// Number returns n of RowAt.
func (r Row) Number() int { return int(r.n) }

// Index returns whose generation the row's process is.
func (r Row) Index() int { return int(r.life().index.Load()) }

// Generation returns the generation of the row's process.
func (r Row) Generation() uint64 { return r.life().generation.Load() }

// PID returns the row's process id, 0 before SetPID.
func (r Row) PID() int { return int(r.life().pid.Load()) }

// Accepting says whether the worker takes calls.
func (r Row) Accepting() bool { return r.hot().load.Load()&acceptingBit != 0 }

// Running returns how many tasks hold a slot.
func (r Row) Running() int { return int(r.hot().load.Load() & runningMask) }

// Accepted returns how many packages this process accepted.
func (r Row) Accepted() uint64 { return r.hot().accepted.Load() }

// Ended returns the end record of generation g in this row. ok is false while
// the process lives, and when the row has another generation by now; two
// indexes' generations are told apart only if they are numbered differently.
func (r Row) Ended(g uint64) (e End, ok bool) {
	l := r.life()
	r.t.consistent(func() {
		how := l.how.Load()
		e = End{Reason: reasonOf(how), Signal: int(l.signal.Load()), Code: int(l.code.Load())}
		ok = how != 0 && l.generation.Load() == g
	})
	if !ok {
		return End{}, false
	}
	return e, true
}

func (r Row) hot() *hotLine  { return &r.t.hot[r.n] }
func (r Row) life() *life    { return &r.t.lives[r.n] }
func (r Row) maps() *bitmaps { return &r.t.maps[r.n] }

func (r Row) records() []record {
	first := int(r.n) * r.t.places
	return r.t.records[first : first+r.t.places]
}

// Allocate takes the row that is free for the longest time for the next
// generation of index, and sets its start time to now. The error is ErrNoRow
// when there is none. The parent's.
func (t *Table) Allocate(index int, generation uint64) (Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		return Row{}, ErrNoRow
	}
	r := Row{t, int32(t.free[0])}
	t.free = t.free[1:]
	t.change(func() {
		r.clear()
		l := r.life()
		l.index.Store(uint32(index))
		l.generation.Store(generation)
		l.started.Store(time.Now().UnixNano())
		l.state.Store(rowBooting)
	})
	return r, nil
}

// clear makes the row as new. It touches only the records that were in use:
// memory that was never touched costs nothing.
func (r Row) clear() {
	h := r.hot()
	h.load.Store(0)
	h.accepted.Store(0)
	h.success.Store(0)
	h.fail.Store(0)
	h.expired.Store(0)
	h.busy.Store(0)

	l := r.life()
	l.pid.Store(0)
	l.how.Store(0)
	l.signal.Store(0)
	l.code.Store(0)

	records := r.records()
	for place := range taken(r.maps().tasks[:]) {
		if place < len(records) {
			records[place].taskID.Store(0)
		}
	}
	for w := range r.maps().tasks {
		r.maps().tasks[w].Store(0)
	}
	for w := range r.maps().conns {
		r.maps().conns[w].Store(0)
	}
	slots := &r.t.conns[r.n]
	for place := range slots {
		slots[place].Store(0)
	}
}

// SetPID records the process. The parent's.
func (r Row) SetPID(pid int) {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.t.change(func() { r.life().pid.Store(int32(pid)) })
}

// SetCurrent makes r the row that takes calls for index: one store moves
// acceptance from its predecessor. The zero Row leaves the index without one. The parent's.
func (t *Table) SetCurrent(index int, r Row) {
	t.mu.Lock()
	t.change(func() {
		if r.t == nil {
			t.current[index].Store(0)
			return
		}
		r.life().state.Store(rowServing)
		t.current[index].Store(uint32(r.n) + 1)
	})
	t.mu.Unlock()
	t.bump()
}

// SetRestarting sets what Status shows of an index, also when it has no row. The parent's.
func (t *Table) SetRestarting(index int, degraded bool, restarts uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change(func() {
		x := &t.indexes[index]
		x.restarts.Store(restarts)
		x.degraded.Store(0)
		if degraded {
			x.degraded.Store(1)
		}
	})
}

// Finish closes the books of a process that was reaped: the row stops
// accepting and is no longer its index's current one, what was running moves
// to lost, the end record is written, and the counts are added to the index's
// totals. A second Finish of the same process does nothing. The parent's.
func (r Row) Finish(e End) {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	l := r.life()
	if state := l.state.Load(); state != rowBooting && state != rowServing {
		return
	}
	r.t.change(func() {
		x := &r.t.indexes[l.index.Load()]
		r.t.current[l.index.Load()].CompareAndSwap(uint32(r.n)+1, 0)
		r.hot().load.Store(0)
		c := r.counts()
		// Not from running: a process killed between the two stores of an
		// admission or a release would leave the sum wrong.
		x.lost.Add(c.accepted - c.success - c.fail)
		x.accepted.Add(c.accepted)
		x.success.Add(c.success)
		x.fail.Add(c.fail)
		x.expired.Add(c.expired)
		x.busy.Add(c.busy)
		l.signal.Store(int32(e.Signal))
		l.code.Store(int32(e.Code))
		l.how.Store(numberOf(e.Reason))
		l.state.Store(rowEnded)
	})
}

// Free gives an ended row back. Its end record, its tasks and its last ids stay
// readable until it is used again. The parent's.
func (r Row) Free() {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.life().state.Load() != rowEnded {
		return
	}
	r.t.change(func() { r.life().state.Store(rowFree) })
	r.t.free = append(r.t.free, int(r.n))
}
