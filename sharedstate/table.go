package sharedstate

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/taskd-go/task/internal/shm"
)

// A Table is one pool's state, for reading and for NextTaskID. Parent and WorkerRow have the
// methods that write more. Its methods, and those of its rows, are safe for concurrent use, across
// processes too. Only the pool's own processes have a table that they can write.
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
	records []record // places of them for each row
	places  int
}

// Open maps a table that another process created, and takes ownership of f. The error names the
// fault of a file that is not a table, has another layout version, or has a size that differs from
// its header.
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
	mem, err := shm.Map(f, s.size, writable)
	if err != nil {
		return nil, err
	}
	return newTable(f, mem, s, writable), nil
}

func readHeader(f *os.File) (sections, error) {
	raw, err := shm.Map(f, headerSize, false)
	if err != nil {
		return sections{}, err
	}
	h := &view[header](raw, 0, 1)[0]
	magic, version, size, rows := h.magic, h.version, h.size, h.rows
	workers, maxRunning := h.workers, h.maxRunning
	if err := shm.Unmap(raw); err != nil {
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
	workers := (s.maps - s.indexes) / indexSize
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
	// The garbage collector does not follow pointers into mem: long readers keep t alive
	// themselves.
	runtime.AddCleanup(t, func(mem []byte) { _ = shm.Unmap(mem) }, mem)
	return t
}

// File returns the table's memory, to hand to another process. The table still owns it.
func (t *Table) File() *os.File { return t.file }

// Close closes the table's file. The memory stays mapped while the table, a row or a Chooser of it
// is in use, so a late reader finds the last counts.
func (t *Table) Close() error { return t.file.Close() }

// Workers returns the number of indexes.
func (t *Table) Workers() int { return len(t.current) }

// NextTaskID returns an id that is greater than all ids before it, in all processes. A table that
// is open for reading alone returns 0.
func (t *Table) NextTaskID() uint64 {
	if !t.writable {
		return 0
	}
	return t.nextTask.Add(1)
}

// Closed reports whether the pool takes no more calls.
func (t *Table) Closed() bool { return t.closed.Load() != 0 }

// Current returns the row that takes calls for index. ok is false while there is none.
func (t *Table) Current(index int) (r Row, ok bool) {
	n := int(t.current[index].Load()) - 1
	if n < 0 || n >= len(t.hot) {
		return Row{}, false
	}
	return Row{t, int32(n)}, true
}

// rowAt returns row n, 0 … Rows()-1.
func (t *Table) rowAt(n int) Row { return Row{t, int32(n)} }

// Rows returns the number of rows: two for each index and 8 more.
func (t *Table) Rows() int { return len(t.hot) }

// bump makes all waiting callers, in all processes, choose again.
func (t *Table) bump() {
	t.wake.Add(1)
	shm.FutexWake(t.wakeWord())
}

func (t *Table) wakeWord() *uint32 { return (*uint32)(unsafe.Pointer(&t.wake)) }
