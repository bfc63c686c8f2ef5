package sharedstate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/shm"
)

// ErrNoRow is the error of Allocate while all rows are taken: too many generations live at once.
var ErrNoRow = errors.New("no free row in the table")

// A Parent is the table as the parent of the pool's processes writes it. Its methods are safe for
// concurrent use.
type Parent struct {
	*Table
	mu   sync.Mutex // held by the writers; there are none in other processes
	free []int      // numbers of the free rows, the longest free one first
}

// A ParentRow is a row as the parent writes it. Its methods are safe for concurrent use.
type ParentRow struct {
	Row
	p *Parent
}

// Create makes an empty table for 1 to MaxWorkers workers of at most maxRunning tasks each. The
// process that calls it is the pool's parent.
func Create(workers, maxRunning int) (*Parent, error) {
	s, err := layoutOf(workers, maxRunning)
	if err != nil {
		return nil, fmt.Errorf("create table: %w", err)
	}
	f, err := shm.Create("taskd-table", s.size)
	if err != nil {
		return nil, fmt.Errorf("create table: %w", err)
	}
	mem, err := shm.Map(f, s.size, true)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create table: %w", err), f.Close())
	}
	h := &view[header](mem, 0, 1)[0]
	h.size = uint64(s.size)
	h.version = layoutVersion
	h.workers = uint32(workers)
	h.maxRunning = uint32(maxRunning)
	h.rows = uint32(s.rows)
	h.magic = layoutMagic
	p := &Parent{Table: newTable(f, mem, s, true), free: make([]int, s.rows)}
	for n := range p.free {
		p.free[n] = n
	}
	return p, nil
}

// Allocate takes the row that has been free for the longest time for the next generation of index,
// and sets its start time to now. The error is ErrNoRow if no row is free.
func (p *Parent) Allocate(index int, generation uint64) (ParentRow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return ParentRow{}, ErrNoRow
	}
	r := Row{p.Table, int32(p.free[0])}
	p.free = p.free[1:]
	p.change(func() {
		r.clear()
		l := r.life()
		l.index.Store(uint32(index))
		l.generation.Store(generation)
		l.started.Store(time.Now().UnixNano())
		l.state.Store(rowBooting)
	})
	return ParentRow{r, p}, nil
}

// SetCurrent makes r the row that takes calls for index. One store moves acceptance from the row
// before. The zero ParentRow leaves the index without a row.
func (p *Parent) SetCurrent(index int, r ParentRow) {
	p.mu.Lock()
	p.change(func() {
		if r.t == nil {
			p.current[index].Store(0)
			return
		}
		r.life().state.Store(rowServing)
		p.current[index].Store(uint32(r.n) + 1)
	})
	p.mu.Unlock()
	p.bump()
}

// SetRestarting sets what Status shows of an index, even of one without a row.
func (p *Parent) SetRestarting(index int, degraded bool, restarts uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(func() {
		x := &p.indexes[index]
		x.restarts.Store(restarts)
		x.degraded.Store(0)
		if degraded {
			x.degraded.Store(1)
		}
	})
}

// SetClosed says that the pool takes no more calls, and wakes all waiting callers.
func (p *Parent) SetClosed() {
	p.closed.Store(1)
	p.bump()
}

// change runs write so that consistent sees all of its changes or none. The caller holds p.mu.
func (p *Parent) change(write func()) {
	p.seq.Add(1)
	write()
	p.seq.Add(1)
}

// SetPID stores the id of the row's process.
func (r ParentRow) SetPID(pid int) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.change(func() { r.life().pid.Store(int32(pid)) })
}

// Finish ends the accounts of a process that was reaped: the row stops accepting and is no longer
// current, running tasks move to lost, e is stored, and the counts are added to the index's totals.
// A second Finish of the same process does nothing.
func (r ParentRow) Finish(e End) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	l := r.life()
	if state := l.state.Load(); state != rowBooting && state != rowServing {
		return
	}
	r.p.change(func() {
		index := l.index.Load()
		r.t.current[index].CompareAndSwap(uint32(r.n)+1, 0)
		r.hot().load.Store(0)
		v := r.hot().counters.load()
		// Not from running: a process killed between the two stores of an admission or a release
		// would leave the sum wrong.
		v[lost] = v[accepted] - v[success] - v[fail]
		r.t.indexes[index].counters.add(v)
		l.signal.Store(int32(e.Signal))
		l.code.Store(int32(e.Code))
		l.how.Store(numberOf(e.Reason))
		l.state.Store(rowEnded)
	})
}

// Free makes an ended row free for a later process. Its end, its tasks and its last ids stay
// readable until Allocate takes it. For a row that has not ended it does nothing.
func (r ParentRow) Free() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if r.life().state.Load() != rowEnded {
		return
	}
	r.p.change(func() { r.life().state.Store(rowFree) })
	r.p.free = append(r.p.free, int(r.n))
}

// clear makes the row as new. Of the records it touches those that were in use: memory that was
// never touched costs nothing.
func (r Row) clear() {
	h := r.hot()
	h.load.Store(0)
	h.cause.Store(0)
	h.counters.clear()

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
