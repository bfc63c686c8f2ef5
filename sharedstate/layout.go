package sharedstate

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/taskd-go/task/tasktype"
)

// The file begins with the header; the sections follow in the order of the fields of sections.
// Words are in the byte order of the host, which all its processes share. A change of any of
// this increases layoutVersion.
const (
	layoutMagic   = 0x656c626174646b74
	layoutVersion = 2

	cacheLine = 64

	maxPlaces = 1024 // in-flight records of a row
	maxConns  = 128  // connection slots of a row
	nameBytes = 48   // of a task's name in its in-flight record
	mapBits   = 64   // places in one word of a bitmap
)

// MaxWorkers is the largest number of workers of a table.
const MaxWorkers = 512

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

	seq    atomic.Uint32 // odd while the parent writes
	closed atomic.Uint32
	_      [cacheLine - 8]byte
}

// The counters of a row and of an index. A further one goes here and into addTo.
const (
	accepted = iota
	success
	fail
	expired
	busy
	lost // 0 in a row: only the parent knows it
	numCounters
)

type counters [numCounters]atomic.Uint64

// load reads the values from the last to the first. A worker counts a task as accepted before it
// counts its end, so accepted is never below success + fail.
func (c *counters) load() (v counts) {
	for i := numCounters - 1; i >= 0; i-- {
		v[i] = c[i].Load()
	}
	return v
}

func (c *counters) add(v counts) {
	for i := range c {
		c[i].Add(v[i])
	}
}

func (c *counters) clear() {
	for i := range c {
		c[i].Store(0)
	}
}

// counts are the values of counters.
type counts [numCounters]uint64

func (v counts) addTo(s *tasktype.WorkerStatus) {
	s.Accepted += v[accepted]
	s.Success += v[success]
	s.Fail += v[fail]
	s.Expired += v[expired]
	s.Busy += v[busy]
	s.Lost += v[lost]
}

// A hotLine is what the worker of a row writes with every task. load holds acceptance and running
// in one word, so that a Chooser reads both at once.
//
// The padding comes first: Go adds a word behind an empty array at the end of a struct.
type hotLine struct {
	_ [(cacheLine - unsafe.Sizeof(hotWords{})%cacheLine) % cacheLine]byte
	hotWords
}

type hotWords struct {
	load  atomic.Uint32
	cause atomic.Uint32 // number of a Reason; 0: the worker knows none for which it will be ended
	counters
}

const (
	acceptingBit = 1 << 31
	runningMask  = acceptingBit - 1
)

// A life is what the parent writes about the process of a row.
type life struct {
	state      atomic.Uint32
	index      atomic.Uint32
	generation atomic.Uint64
	started    atomic.Int64 // wall clock, Unix nanoseconds
	pid        atomic.Int32

	how    atomic.Uint32 // number of a Reason; 0: the process has not ended
	signal atomic.Int32
	code   atomic.Int32
	_      [cacheLine - 40]byte
}

// The states of a row.
const (
	rowFree    = iota
	rowBooting // allocated, never current
	rowServing // was made current: it counts in Status, even after another row became current
	rowEnded   // finished, its counts are in the index's totals
)

// An indexLine is what the parent writes about an index: the sums of its ended rows.
type indexLine struct {
	_ [(cacheLine - unsafe.Sizeof(indexWords{})%cacheLine) % cacheLine]byte
	indexWords
}

type indexWords struct {
	counters
	restarts atomic.Uint64
	degraded atomic.Uint32
}

// A bitmaps line says which of a row's records and connection slots are taken.
type bitmaps struct {
	tasks [maxPlaces / mapBits]atomic.Uint64
	conns [maxConns / mapBits]atomic.Uint64
	_     [cacheLine - 16]byte
}

// A record is one task in flight. Its worker writes taskID last and clears it first.
type record struct {
	taskID  atomic.Uint64 // 0: no task
	callID  atomic.Uint64
	started atomic.Int64 // negative until the run begins
	name    [nameBytes / 8]atomic.Uint64
}

type connSlots [maxConns]atomic.Uint64

// The sizes of the parts. All but that of a record are whole cache lines.
const (
	headerSize    = int(unsafe.Sizeof(header{}))
	hotSize       = int(unsafe.Sizeof(hotLine{}))
	lifeSize      = int(unsafe.Sizeof(life{}))
	indexSize     = int(unsafe.Sizeof(indexLine{}))
	bitmapsSize   = int(unsafe.Sizeof(bitmaps{}))
	connSlotsSize = int(unsafe.Sizeof(connSlots{}))
	recordSize    = int(unsafe.Sizeof(record{}))
)

// sections are the offsets that follow from the number of workers and of their tasks.
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
	s.lives = s.hot + s.rows*hotSize
	s.indexes = s.lives + s.rows*lifeSize
	s.maps = s.indexes + workers*indexSize
	s.conns = s.maps + s.rows*bitmapsSize
	s.record = s.conns + s.rows*connSlotsSize
	s.size = s.record + s.rows*s.places*recordSize
	return s, nil
}

// view lays n values of type T over the bytes of mem from offset on.
func view[T any](mem []byte, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[offset])), n)
}
