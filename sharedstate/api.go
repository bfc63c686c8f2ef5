package sharedstate

import (
	"context"
	"os"
	"time"
)

// A Table is one pool's state. Methods are safe for concurrent use, across processes too.
//
// Layout: a header; one word "current" per index that names the index's row; a dense array of hot lines, one cache line a row
// (accepting, running, accepted, success, fail, expired, busy: only the row's own worker writes them); colder arrays: what the parent writes (index,
// generation, pid, start time, state, totals, end record, under a sequence number so that a reader sees one generation whole), the last
// ids read per connection, and the in-flight records. There are at least 2*workers+8 rows, and a freed row is the last to be used again, so that its end record stays readable.
type Table struct{}

func Create(workers, maxRunning int) (*Table, error)                     { panic("stub") }
func Open(f *os.File, writable bool) (*Table, error)                     { panic("stub") } // checks magic, version and size
func (t *Table) File() *os.File                                          { panic("stub") }
func (t *Table) Close() error                                            { panic("stub") } // unmaps; nobody may use the table or its rows afterwards
func (t *Table) Workers() int                                            { panic("stub") }
func (t *Table) MaxRunning() int                                         { panic("stub") }
func (t *Table) NextTaskID() uint64                                      { panic("stub") } // > 0, growing, over all processes
func (t *Table) SetClosed()                                              { panic("stub") } // the pool takes no more calls; wakes waiters
func (t *Table) Closed() bool                                            { panic("stub") }
func (t *Table) Current(index int) (Row, bool)                           { panic("stub") }
func (t *Table) SetCurrent(index int, r Row)                             { panic("stub") } // one store moves acceptance; wakes waiters
func (t *Table) Status() []Status                                        { panic("stub") } // by index; a retiring row with its own counts after its index's current one
func (t *Table) RowAt(n int) Row                                         { panic("stub") }
func (t *Table) SetRestarting(index int, degraded bool, restarts uint64) { panic("stub") } // what Status shows of an index, also when it has no row

// A Row is one worker process's line. The zero Row is none.
type Row struct { /* t *Table; n int32 */
}

func (r Row) Number() int { panic("stub") }

// The parent's side. Allocate takes a free row for the next generation of index and sets its
// start time to now; it fails when there is none. Finish, after the reap: the row stops accepting, what was running
// moves to lost, the end record is written (how, signal, exit code), the counts are added to the index's totals. Free gives the row back to the list.
func (t *Table) Allocate(index int, generation uint64) (Row, error) { panic("stub") }
func (r Row) SetPID(pid int)                                        { panic("stub") }
func (r Row) Finish(e End)                                          { panic("stub") }
func (r Row) Free()                                                 { panic("stub") }

// An End says how a worker process ended.
type End struct {
	How    uint32 // a supervisor reason's number, never 0
	Signal int
	Code   int
}

// The worker's side, by its own process alone. Admit takes a slot by compare-and-swap if running < MaxRunning (accepted+1, running+1), else
// busy+1. Refuse counts an expired package that took no slot: accepted, fail, expired +1. Release gives the slot back exactly once per Admit, with its outcome; when the
// worker was full before it, waiters are woken.
func (r Row) SetAccepting(on bool) { panic("stub") }
func (r Row) Admit() bool          { panic("stub") }
func (r Row) Expired()             { panic("stub") } // accepted, fail, expired +1 without a slot
func (r Row) Release(o Outcome)    { panic("stub") }

type Outcome uint8

const (
	Succeeded Outcome = iota
	Failed
	ExpiredInSlot // counts in fail and expired
)

// In-flight records: Record remembers a task that took a slot and returns its place; Forget clears it. At most 1,024 a row; beyond that Record returns -1.
// Tasks lists them, also of a dead row. Their number is what the audit compares with Running.
func (r Row) Record(taskID uint64, name string) (place int) { panic("stub") }
func (r Row) Forget(place int)                              { panic("stub") }
func (r Row) Tasks() []InFlight                             { panic("stub") }

type InFlight struct {
	TaskID  uint64
	Name    string // cut at 48 bytes
	Started int64  // CLOCK_MONOTONIC, ns
}

// Connection slots: the last id read whole on each of up to 128 connections, written before the task starts.
// A connection that finds no place has none (-1). LastRead finds the greatest id with the high 32 bits of id in a row, dead or alive.
func (r Row) ConnOpen() (place int)             { panic("stub") }
func (r Row) ConnRead(place int, id uint64)     { panic("stub") }
func (r Row) ConnClose(place int)               { panic("stub") }
func (r Row) LastRead(id uint64) (uint64, bool) { panic("stub") }

// Anyone's side.
func (r Row) Index() int         { panic("stub") }
func (r Row) Generation() uint64 { panic("stub") }
func (r Row) PID() int           { panic("stub") }
func (r Row) Accepting() bool    { panic("stub") }
func (r Row) Running() int       { panic("stub") }
func (r Row) Accepted() uint64   { panic("stub") }

// Ended returns the end record of generation g in this row; ok is false while it lives, or when the row has another generation.
func (r Row) Ended(g uint64) (e End, ok bool) { panic("stub") }

// Status is what one row (or an index without one) shows.
type Status struct {
	Index                                   int
	Accepting                               bool
	Running                                 int
	Success, Fail                           uint64
	PID                                     int // 0: waits for its restart
	StartUpTime                             time.Time
	Accepted, Lost, Expired, Busy, Restarts uint64
	Generation                              uint64
	Degraded                                bool
}

// A Chooser picks workers for the calls of one process: the smallest load among the current, accepting rows with load < MaxRunning,
// ties at random; load is the larger of a row's running and this process's own calls in flight to it. It allocates nothing.
type Chooser struct{}

func NewChooser(t *Table) *Chooser { panic("stub") }

// Pick takes one of our own in-flight counts on the row; Done gives it back, exactly once, and wakes this process's waiters.
func (c *Chooser) Pick() (Row, bool) { panic("stub") }
func (c *Chooser) Done(r Row)        { panic("stub") }

// PickWait waits until a Pick succeeds, ctx ends, the table closes, or d has passed: one thread per process waits on the shared table (futex), however many callers wait; they are served in order.
func (c *Chooser) PickWait(ctx context.Context, d time.Duration) (Row, bool) { panic("stub") }
func (c *Chooser) Close()                                                    { panic("stub") }

// InFlight returns this process's own calls in flight to a row.
func (c *Chooser) InFlight(r Row) int { panic("stub") }

// Age is how long the task had been running at a time of this process's wall clock.
func (f InFlight) Age(at time.Time) time.Duration { panic("stub") }
