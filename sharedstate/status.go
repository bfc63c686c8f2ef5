package sharedstate

import (
	"runtime"
	"time"

	"github.com/taskd-go/task/tasktype"
)

// Status returns one element an index, in order, with the sums of all its ended
// processes and of the current one. A process that retires has an element
// of its own, with its own counts, after its index's. Every process is counted once, also
// while the parent closes its books.
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

// retiring returns the rows that were current and are not any more, by index.
func (t *Table) retiring() map[int][]Row {
	var rows map[int][]Row
	for n := range t.lives {
		r := t.RowAt(n)
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
	s := tasktype.WorkerStatus{
		Index:    index,
		Accepted: x.accepted.Load(),
		Success:  x.success.Load(),
		Fail:     x.fail.Load(),
		Lost:     x.lost.Load(),
		Expired:  x.expired.Load(),
		Busy:     x.busy.Load(),
		Restarts: x.restarts.Load(),
		Degraded: x.degraded.Load() != 0,
	}
	if r, ok := t.Current(index); ok {
		r.addTo(&s)
	}
	return s
}

// addTo adds the row's counts, and says whose they are.
func (r Row) addTo(s *tasktype.WorkerStatus) {
	l := r.life()
	s.Index = r.Index()
	s.PID = r.PID()
	s.Generation = r.Generation()
	s.StartUpTime = time.Unix(0, l.started.Load())
	load := r.hot().load.Load()
	s.Accepting = load&acceptingBit != 0
	s.Running = int(load & runningMask)
	c := r.counts()
	s.Accepted += c.accepted
	s.Success += c.success
	s.Fail += c.fail
	s.Expired += c.expired
	s.Busy += c.busy
}

// counts are what a row's own process counted.
type counts struct{ accepted, success, fail, expired, busy uint64 }

func (r Row) counts() counts {
	h := r.hot()
	return counts{
		accepted: h.accepted.Load(),
		success:  h.success.Load(),
		fail:     h.fail.Load(),
		expired:  h.expired.Load(),
		busy:     h.busy.Load(),
	}
}

// change runs write, which changes what is not hot, so that consistent sees all
// of it or nothing. The caller holds t.mu.
func (t *Table) change(write func()) {
	t.seq.Add(1)
	write()
	t.seq.Add(1)
}

// patience bounds how long a reader waits for a parent that stands still in the
// middle of a change: it was stopped or killed there.
const patience = 250 * time.Millisecond

// consistent runs read until no change fell into it. When a change makes no
// progress for patience it takes what it can read: a parent that died there must hold up nobody.
func (t *Table) consistent(read func()) {
	defer runtime.KeepAlive(t) // or the memory may go while it is read
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
		case time.Since(since) > patience:
			read()
			return
		default:
			time.Sleep(10 * time.Microsecond) // the writer may need this processor
		}
	}
}
