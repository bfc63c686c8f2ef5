package sharedstate

import (
	"slices"

	"github.com/taskd-go/task/tasktype"
)

// A Row is one worker process's part of the table, for reading. The zero Row is invalid. After
// ParentRow.Free a later process of any index gets the row; a Row value does not notice.
type Row struct {
	t *Table
	n int32
}

// An End says how a worker process ended.
type End struct {
	Reason tasktype.Reason
	Signal int // 0: none
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

// Number returns the number of the row, for Table.WorkerRow.
func (r Row) Number() int { return int(r.n) }

// Index returns the index of the row's process.
func (r Row) Index() int { return int(r.life().index.Load()) }

// Generation returns the generation of the row's process.
func (r Row) Generation() uint64 { return r.life().generation.Load() }

// PID returns the id of the row's process, 0 before SetPID.
func (r Row) PID() int { return int(r.life().pid.Load()) }

// Accepting reports whether the worker takes calls.
func (r Row) Accepting() bool { return r.hot().load.Load()&acceptingBit != 0 }

// Running returns how many tasks hold a slot.
func (r Row) Running() int { return int(r.hot().load.Load() & runningMask) }

// Accepted returns how many packages this process accepted.
func (r Row) Accepted() uint64 { return r.hot().counters[accepted].Load() }

// Ended returns how the process of generation g ended. ok is false while the process lives, and
// once the row belongs to another generation. No two generations of a table have the same number.
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

// Cause returns why the process of generation g will be or was ended, as far as the worker itself
// knows, and "" if it knows no cause or the row belongs to another generation.
func (r Row) Cause(g uint64) (why tasktype.Reason) {
	r.t.consistent(func() {
		why = reasonOf(r.hot().cause.Load())
		if r.life().generation.Load() != g {
			why = ""
		}
	})
	return why
}

func (r Row) hot() *hotLine  { return &r.t.hot[r.n] }
func (r Row) life() *life    { return &r.t.lives[r.n] }
func (r Row) maps() *bitmaps { return &r.t.maps[r.n] }

func (r Row) records() []record {
	first := int(r.n) * r.t.places
	return r.t.records[first : first+r.t.places]
}
