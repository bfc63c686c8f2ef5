package sharedstate

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"runtime"
	"sync/atomic"
)

// An InFlight is a task that holds a slot.
type InFlight struct {
	TaskID  uint64
	Name    string // cut at 48 bytes
	Started int64  // CLOCK_MONOTONIC, ns
}

// Record remembers a task that took a slot now, at an instant of CLOCK_MONOTONIC, under its id > 0 and that of the call
// it came with, and returns its place for Begin and Forget; -1 when all places of the row (1,024, or MaxRunning if that
// is less) are taken. The worker's own.
func (r Row) Record(taskID, callID uint64, name string, now int64) (place int) {
	place = claim(r.maps().tasks[:], r.t.places)
	if place < 0 {
		return -1
	}
	rec := &r.records()[place]
	var buf [nameBytes]byte
	copy(buf[:], name)
	for w := range rec.name {
		// Often it is there already, and a store costs many times what a load does.
		if part := binary.NativeEndian.Uint64(buf[w*8:]); rec.name[w].Load() != part {
			rec.name[w].Store(part)
		}
	}
	rec.callID.Store(callID)
	rec.started.Store(-now)
	rec.taskID.Store(taskID)
	return place
}

// Begin notes, right before it, that the task's run begins; -1 is none. The worker's own.
func (r Row) Begin(place int) {
	if place >= 0 {
		rec := &r.records()[place]
		rec.started.Store(-rec.started.Load())
	}
}

// NotBegun says whether a task that came with the call had a slot and its run had not begun
// when the row's process ended. While that lives it means nothing.
func (r Row) NotBegun(callID uint64) bool {
	defer runtime.KeepAlive(r.t)
	records := r.records()
	for place := range taken(r.maps().tasks[:]) {
		if place >= len(records) {
			break
		}
		if rec := &records[place]; rec.callID.Load() == callID && rec.taskID.Load() != 0 {
			return rec.started.Load() < 0
		}
	}
	return false
}

// Forget clears the record at place; -1 is none. The worker's own.
func (r Row) Forget(place int) {
	if place < 0 {
		return
	}
	r.records()[place].taskID.Store(0)
	release(r.maps().tasks[:], place)
}

// Tasks lists the records, of a dead row those that its process left. A record
// that is written or cleared meanwhile may be missing, but none is shown that never was.
func (r Row) Tasks() []InFlight {
	defer runtime.KeepAlive(r.t)
	var tasks []InFlight
	records := r.records()
	for place := range taken(r.maps().tasks[:]) {
		if place >= len(records) {
			break
		}
		if task, ok := records[place].read(); ok {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// read fails for a record that changes hands: ids are never used twice, so the
// same id before and after means that all between belongs to it.
func (rec *record) read() (InFlight, bool) {
	id := rec.taskID.Load()
	task := InFlight{TaskID: id, Started: max(rec.started.Load(), -rec.started.Load())}
	var buf [nameBytes]byte
	for w := range rec.name {
		binary.NativeEndian.PutUint64(buf[w*8:], rec.name[w].Load())
	}
	task.Name = string(bytes.TrimRight(buf[:], "\x00"))
	return task, id != 0 && rec.taskID.Load() == id
}

// claim takes the lowest free of the first places bits; -1 when there is none.
func claim(words []atomic.Uint64, places int) int {
	for w := range words {
		for {
			old := words[w].Load()
			bit := bits.TrailingZeros64(^old)
			place := w*mapBits + bit
			if place >= places {
				return -1
			}
			if bit == mapBits {
				break
			}
			if words[w].CompareAndSwap(old, old|1<<bit) {
				return place
			}
		}
	}
	return -1
}

func release(words []atomic.Uint64, place int) {
	words[place/mapBits].And(^(uint64(1) << (place % mapBits)))
}

// taken yields the places that are taken.
func taken(words []atomic.Uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for w := range words {
			for word := words[w].Load(); word != 0; word &= word - 1 {
				if !yield(w*mapBits + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
