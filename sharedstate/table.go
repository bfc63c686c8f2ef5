package sharedstate

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/taskd-go/task/internal/sys"
)

// A Table is one pool's state. Its methods, and those of its rows, are safe for
// concurrent use, across processes too. Who may write what is said at each
// method; nobody but the pool's own processes has a table that can be written.
type Table struct {
	file     *os.File
	writable bool

	*header
	current []atomic.Uint32 // by index: the number of its row + 1; 0: none
	hot     []hotLine
	lives   []life
	indexes []indexLine
	maps    []bitmaps
	conns   []connSlots
	records []record // places of them a row
	places  int

	mu   sync.Mutex // the parent's writers, in its own process
	free []int      // the parent's; the front is the one longest free
}

// Create makes an empty table for 1 to 512 workers of at most maxRunning tasks each.
// The process that creates it is the pool's parent.
func Create(workers, maxRunning int) (*Table, error) {
	s, err := layoutOf(workers, maxRunning)
	if err != nil {
		return nil, fmt.Errorf("create table: %w", err)
	}
	f, err := sys.Memory("taskd-table", s.size)
	if err != nil {
		return nil, fmt.Errorf("create table: %w", err)
	}
	mem, err := sys.Map(f, s.size, true)
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
	t := newTable(f, mem, s, true)
	t.free = make([]int, s.rows)
	for n := range t.free {
		t.free[n] = n
	}
	return t, nil
}

// Open maps a table that another process created, and takes f over. It refuses
// a file that is none, is of another layout version, or has another size than its header says.
func Open(f *os.File, writable bool) (*Table, error) {
	t, err := open(f, writable)
	if err != nil {
		return nil, fmt.Errorf("open table: %w", err)
	}
	return t, nil
}

func open(f *os.File, writable bool) (*Table, error) {
	s, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	mem, err := sys.Map(f, s.size, writable)
	if err != nil {
		return nil, err
	}
	return newTable(f, mem, s, writable), nil
}

func readHeader(f *os.File) (sections, error) {
	raw, err := sys.Map(f, headerSize, false)
	if err != nil {
		return sections{}, err
	}
	h := &view[header](raw, 0, 1)[0]
	magic, version, size, rows := h.magic, h.version, h.size, h.rows
	workers, maxRunning := h.workers, h.maxRunning
	if err := sys.Unmap(raw); err != nil {
		return sections{}, err
	}
	if magic != layoutMagic {
		return sections{}, errors.New("the file is not a table")
	}
	if version != layoutVersion {
		return sections{}, fmt.Errorf("its layout has version %d, this program knows %d", version, layoutVersion)
	}
	s, err := layoutOf(int(workers), int(maxRunning))
	if err != nil {
		return sections{}, err
	}
	st, err := f.Stat()
	if err != nil {
		return sections{}, err
	}
	if size != uint64(s.size) || st.Size() != int64(s.size) || int(rows) != s.rows {
		return sections{}, fmt.Errorf("it has %d bytes and says %d; %d workers of %d tasks need %d",
			st.Size(), size, workers, maxRunning, s.size)
	}
	return s, nil
}

func newTable(f *os.File, mem []byte, s sections, writable bool) *Table {
	workers := (s.maps - s.indexes) / cacheLine
	t := &Table{
		file:     f,
		writable: writable,
		header:   &view[header](mem, 0, 1)[0],
		current:  view[atomic.Uint32](mem, s.current, workers),
		hot:      view[hotLine](mem, s.hot, s.rows),
		lives:    view[life](mem, s.lives, s.rows),
		indexes:  view[indexLine](mem, s.indexes, workers),
		maps:     view[bitmaps](mem, s.maps, s.rows),
		conns:    view[connSlots](mem, s.conns, s.rows),
		records:  view[record](mem, s.record, s.rows*s.places),
		places:   s.places,
	}
	// The collector does not follow pointers into mem: long readers keep t alive themselves.
	runtime.AddCleanup(t, func(mem []byte) { _ = sys.Unmap(mem) }, mem)
	return t
}

// File returns the table's memory, to be handed to another process; it stays the table's.
func (t *Table) File() *os.File { return t.file }

// Close closes the table's file. The memory stays mapped as long as anything
// refers to the table, its rows or its choosers: a late reader finds the last counts.
func (t *Table) Close() error { return t.file.Close() }

// Workers returns the number of indexes.
func (t *Table) Workers() int { return len(t.current) }

// MaxRunning returns how many tasks a worker runs at once.
func (t *Table) MaxRunning() int { return int(t.maxRunning) }

// NextTaskID returns an id that is greater than all before it, in all processes;
// 0 from a table that is open for reading alone.
func (t *Table) NextTaskID() uint64 {
	if !t.writable {
		return 0
	}
	return t.nextTask.Add(1)
}

// SetClosed says that the pool takes no more calls, and wakes all waiters. The parent's.
func (t *Table) SetClosed() {
	t.closed.Store(1)
	t.bump()
}

// Closed says whether the pool takes no more calls.
func (t *Table) Closed() bool { return t.closed.Load() != 0 }

// Current returns the row that takes calls for index; ok is false while there is none.
func (t *Table) Current(index int) (r Row, ok bool) {
	n := int(t.current[index].Load()) - 1
	if n < 0 || n >= len(t.hot) {
		return Row{}, false
	}
	return Row{t, int32(n)}, true
}

// RowAt returns row n, 0 … Rows()-1.
func (t *Table) RowAt(n int) Row { return Row{t, int32(n)} }

// Rows returns how many rows there are: at least two generations of each index and some more.
func (t *Table) Rows() int { return len(t.hot) }

// bump tells all waiters, in all processes, to choose again.
func (t *Table) bump() {
	t.wake.Add(1)
	sys.FutexWake(t.wakeWord())
}

func (t *Table) wakeWord() *uint32 { return (*uint32)(unsafe.Pointer(&t.wake)) }
