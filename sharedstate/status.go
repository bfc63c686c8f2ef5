package sharedstate

import (
	"runtime"
	"time"

	"github.com/taskd-go/task/tasktype"
)

// Status returns one element for each index, in order, with the sums of its ended processes and the
// current one. A process that retires has an element of its own, with its own counts, after that of
// its index. Status counts every process once, even during Finish.
func (t *Table) Status() []tasktype.WorkerStatus {
	var all []tasktype.WorkerStatus
	t.consistent(func() {
		all = make([]tasktype.WorkerStatus, 0, t.Workers()+4)
		retiring := t.retiring()
		for index := range t.indexes {
			all = append(all, t.statusOf(index))
			for _, r := range retiring[index] {
				var s tasktype.WorkerStatus
				r.addTo(&s)
				all = append(all, s)
			}
		}
	})
	return all
}

// retiring returns, by index, the rows of processes that serve on after another row became current.
func (t *Table) retiring() map[int][]Row {
	var rows map[int][]Row
	for n := range t.lives {
		r := t.rowAt(n)
		if r.life().state.Load() != rowServing {
			continue
		}
		index := r.Index()
		if index >= t.Workers() {
			continue
		}
		if current, ok := t.Current(index); ok && current == r {
			continue
		}
		if rows == nil {
			rows = make(map[int][]Row)
		}
		rows[index] = append(rows[index], r)
	}
	return rows
}

func (t *Table) statusOf(index int) tasktype.WorkerStatus {
	x := &t.indexes[index]
	s := tasktype.WorkerStatus{Index: index, Restarts: x.restarts.Load(), Degraded: x.degraded.Load() != 0}
	x.counters.load().addTo(&s)
	if r, ok := t.Current(index); ok {
		r.addTo(&s)
	}
	return s
}

// addTo adds the row's counts to s, and sets what identifies its process.
func (r Row) addTo(s *tasktype.WorkerStatus) {
	l := r.life()
	s.Index = r.Index()
	s.PID = r.PID()
	s.Generation = r.Generation()
	s.StartUpTime = time.Unix(0, l.started.Load())
	load := r.hot().load.Load()
	s.Accepting = load&acceptingBit != 0
	s.Running = int(load & runningMask)
	r.hot().counters.load().addTo(s)
}

// changeLimit bounds how long a reader waits for a parent that was stopped or killed in the middle
// of a change.
const changeLimit = 250 * time.Millisecond

// consistent runs read until no change overlaps with it. If one change goes on for changeLimit,
// consistent runs read anyway: a parent that died must not hold up readers.
func (t *Table) consistent(read func()) {
	defer runtime.KeepAlive(t) // so that the memory stays mapped
	var stuck uint32
	var since time.Time
	for {
		seq := t.seq.Load()
		switch {
		case seq%2 == 0:
			read()
			if t.seq.Load() == seq {
				return
			}
		case seq != stuck:
			stuck, since = seq, time.Now()
		case time.Since(since) > changeLimit:
			read()
			return
		default:
			time.Sleep(10 * time.Microsecond) // the writer may need this processor
		}
	}
}
