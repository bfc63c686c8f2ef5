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
	Name    string // its first 48 bytes
	Started int64  // CLOCK_MONOTONIC, ns
}

// Record stores a task that takes a slot at now, an instant of CLOCK_MONOTONIC in ns. taskID is >
// 0; callID is the id of the call that brought the task. Record returns the place for Begin and
// Forget, -1 if all places of the row are taken: 1,024, or MaxRunning if that is less.
func (r WorkerRow) Record(taskID, callID uint64, name string, now int64) (place int) {
	place = claim(r.maps().tasks[:], r.t.places)
	if place < 0 {
		return -1
	}
	rec := &r.records()[place]
	var buf [nameBytes]byte
	copy(buf[:], name)
	for w := range rec.name {
		// The name is often there already, and a store costs many times what a load costs.
		if part := binary.NativeEndian.Uint64(buf[w*8:]); rec.name[w].Load() != part {
			rec.name[w].Store(part)
		}
	}
	rec.callID.Store(callID)
	rec.started.Store(-now)
	rec.taskID.Store(taskID)
	return place
}

// Begin stores that the run of the task at place begins. The worker calls it right before the run.
// For place -1 it does nothing.
func (r WorkerRow) Begin(place int) {
	if place >= 0 {
		rec := &r.records()[place]
		rec.started.Store(-rec.started.Load())
	}
}

// NotBegun reports whether the task of a call had a slot and its run had not begun when the row's
// process ended. While the process lives the result means nothing.
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

// Forget clears the record at place. For place -1 it does nothing.
func (r WorkerRow) Forget(place int) {
	if place < 0 {
		return
	}
	r.records()[place].taskID.Store(0)
	release(r.maps().tasks[:], place)
}

// Tasks lists the tasks in flight or, if the row's process has ended, those that it left. A record
// that changes meanwhile may be missing; Tasks lists no task that never was.
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

// read returns false for a record that changes meanwhile. No id is used twice, so the same id
// before and after means that all in between belongs to it.
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

// claim takes the lowest free one of the first places bits, and returns -1 if all are taken.
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

// taken yields the taken places.
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
