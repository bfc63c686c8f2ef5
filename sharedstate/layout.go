package sharedstate

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

// The file begins with the header; the sections follow in the order of the
// fields of sections. Words are in the byte order of the host, which all its
// processes share. A change of any of this changes layoutVersion.
const (
	layoutMagic   = 0x656c626174646b74
	layoutVersion = 1

	cacheLine = 64

	MaxWorkers = 512
	maxPlaces  = 1024 // in-flight records a row
	maxConns   = 128  // connection slots a row
	nameBytes  = 48   // of a task in its in-flight record
	mapBits    = 64   // places in one word of a bitmap
)

type header struct {
	magic      uint64
	size       uint64
	version    uint32
	workers    uint32
	maxRunning uint32
	rows       uint32
	_          [cacheLine - 32]byte

	nextTask atomic.Uint64
	_        [cacheLine - 8]byte

	wake atomic.Uint32 // grows whenever a worker may have become free
	_    [cacheLine - 4]byte

	seq    atomic.Uint32 // odd while the parent writes what is not hot
	closed atomic.Uint32
	_      [cacheLine - 8]byte
}

// A hotLine is what a row's own worker writes with every task. load holds
// acceptance and running in one word, so that a chooser sees them together.
type hotLine struct {
	load     atomic.Uint32
	_        uint32
	accepted atomic.Uint64
	success  atomic.Uint64
	fail     atomic.Uint64
	expired  atomic.Uint64
	busy     atomic.Uint64
	_        [cacheLine - 48]byte
}

const (
	acceptingBit = 1 << 31
	runningMask  = acceptingBit - 1
)

// A life is what the parent writes of the process that has the row.
type life struct {
	state      atomic.Uint32
	index      atomic.Uint32
	generation atomic.Uint64
	started    atomic.Int64 // wall clock, Unix nanoseconds
	pid        atomic.Int32

	how    atomic.Uint32 // 0: it has not ended
	signal atomic.Int32
	code   atomic.Int32
	_      [cacheLine - 40]byte
}

// The states of a row.
const (
	rowFree    = iota
	rowBooting // allocated, never current
	rowServing // was made current: it counts in Status, also when it retires
	rowEnded   // finished, its counts are in the index's totals
)

// An indexLine holds what the parent writes of an index: the sums of all its ended rows.
type indexLine struct {
	accepted atomic.Uint64
	success  atomic.Uint64
	fail     atomic.Uint64
	lost     atomic.Uint64
	expired  atomic.Uint64
	busy     atomic.Uint64
	restarts atomic.Uint64
	degraded atomic.Uint32
	_        [cacheLine - 60]byte
}

// A bitmaps line says which of a row's records and connection slots are taken.
type bitmaps struct {
	tasks [maxPlaces / mapBits]atomic.Uint64
	conns [maxConns / mapBits]atomic.Uint64
	_     [cacheLine - 16]byte
}

// A record is one task in flight; taskID is written last and cleared first.
type record struct {
	taskID  atomic.Uint64 // 0: none
	callID  atomic.Uint64
	started atomic.Int64 // negative as long as the run has not begun
	name    [nameBytes / 8]atomic.Uint64
}

type connSlots [maxConns]atomic.Uint64

// Sizes that other builds of the same layoutVersion rely on.
const (
	headerSize    = 4 * cacheLine
	bitmapsSize   = 3 * cacheLine
	connSlotsSize = maxConns * 8
	recordSize    = 3*8 + nameBytes
)

var _ = [1]struct{}{}[unsafe.Sizeof(header{})-headerSize+
	unsafe.Sizeof(hotLine{})-cacheLine+
	unsafe.Sizeof(life{})-cacheLine+
	unsafe.Sizeof(indexLine{})-cacheLine+
	unsafe.Sizeof(record{})-recordSize+
	unsafe.Sizeof(bitmaps{})-bitmapsSize]

// sections are the offsets that follow from the table's two numbers.
type sections struct {
	rows, places                                      int
	current, hot, lives, indexes, maps, conns, record int
	size                                              int
}

func layoutOf(workers, maxRunning int) (sections, error) {
	if workers < 1 || workers > MaxWorkers {
		return sections{}, fmt.Errorf("a table has 1 to %d workers, not %d", MaxWorkers, workers)
	}
	if maxRunning < 1 || maxRunning > math.MaxInt32 {
		return sections{}, fmt.Errorf("a worker runs 1 to %d tasks at once, not %d", math.MaxInt32, maxRunning)
	}
	s := sections{rows: 2*workers + 8, places: min(maxRunning, maxPlaces)}
	s.current = headerSize
	s.hot = s.current + (workers*4+cacheLine-1)/cacheLine*cacheLine
	s.lives = s.hot + s.rows*cacheLine
	s.indexes = s.lives + s.rows*cacheLine
	s.maps = s.indexes + workers*cacheLine
	s.conns = s.maps + s.rows*bitmapsSize
	s.record = s.conns + s.rows*connSlotsSize
	s.size = s.record + s.rows*s.places*recordSize
	return s, nil
}

// view lays n values of type T over the bytes of mem from offset on.
func view[T any](mem []byte, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[offset])), n)
}
