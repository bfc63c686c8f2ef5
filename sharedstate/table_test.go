package sharedstate

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/shm"
)

func newTestTable(t testing.TB, workers, maxRunning int) *Parent {
	t.Helper()
	table, err := Create(workers, maxRunning)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, table.Close()) })
	return table
}

// A testRow is a row as its parent and its worker write it.
type testRow struct {
	WorkerRow
	parent ParentRow
}

func (r testRow) SetPID(pid int) { r.parent.SetPID(pid) }
func (r testRow) Finish(e End)   { r.parent.Finish(e) }
func (r testRow) Free()          { r.parent.Free() }

// allocate starts a generation of index in a row of its own.
func allocate(t testing.TB, table *Parent, index int, generation uint64) testRow {
	t.Helper()
	r, err := table.Allocate(index, generation)
	require.NoError(t, err)
	return testRow{table.WorkerRow(r.Number()), r}
}

// serving starts a generation of index and makes it current.
func serving(t testing.TB, table *Parent, index int, generation uint64) testRow {
	t.Helper()
	r := allocate(t, table, index, generation)
	r.SetPID(1000 + int(generation))
	r.SetAccepting(true)
	table.SetCurrent(index, r.parent)
	return r
}

// readOnly opens a second view of the table, as another process would have it.
func readOnly(t testing.TB, table *Parent) *Table {
	t.Helper()
	f, err := shm.ReadOnly(table.File())
	require.NoError(t, err)
	view, err := Open(f, false)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, view.Close()) })
	return view
}

func TestOpenSeesWhatTheCreatorWrites(t *testing.T) {
	table := newTestTable(t, 3, 7)
	view := readOnly(t, table)
	assert.Equal(t, 3, view.Workers())
	assert.EqualValues(t, 7, view.maxRunning)
	r := serving(t, table, 2, 5)
	require.True(t, r.Admit())

	seen, ok := view.Current(2)
	require.True(t, ok)
	assert.Equal(t, r.Number(), seen.Number())
	assert.Equal(t, 1, seen.Running())
	assert.Equal(t, uint64(5), seen.Generation())
	assert.True(t, seen.Accepting())
	assert.Equal(t, table.Status(), view.Status())

	table.SetClosed()
	assert.True(t, view.Closed())
}

func TestOpenRefusesWhatIsNoTable(t *testing.T) {
	size := func(workers, maxRunning int) int {
		s, err := layoutOf(workers, maxRunning)
		require.NoError(t, err)
		return s.size
	}
	tests := map[string]struct {
		size  int
		write func(h *header)
		want  string
	}{
		"empty memory":          {size(2, 8), func(*header) {}, "not a table"},
		"shorter than a header": {64, nil, "256 are needed"},
		"another version": {
			size(2, 8),
			func(h *header) { h.version++ },
			fmt.Sprintf("version %d", layoutVersion+1),
		},
		"no workers":            {size(2, 8), func(h *header) { h.workers = 0 }, "1 to 512 workers"},
		"too many workers":      {size(2, 8), func(h *header) { h.workers = 1 << 31 }, "1 to 512 workers"},
		"more workers than fit": {size(2, 8), func(h *header) { h.workers = 3 }, "3 workers of 8 tasks need"},
		"no tasks":              {size(2, 8), func(h *header) { h.maxRunning = 0 }, "1 to 2147483647 tasks"},
		"more rows than fit":    {size(2, 8), func(h *header) { h.rows++ }, "2 workers of 8 tasks need"},
		"longer than it says":   {size(2, 8) + 4096, func(*header) {}, "not a table"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := shm.Create("test", test.size)
			require.NoError(t, err)
			defer f.Close()
			if test.write != nil {
				mem, err := shm.Map(f, test.size, true)
				require.NoError(t, err)
				h := &view[header](mem, 0, 1)[0]
				*h = header{size: uint64(test.size), version: layoutVersion, workers: 2, maxRunning: 8, rows: 12}
				if name != "empty memory" && name != "longer than it says" {
					h.magic = layoutMagic
				}
				test.write(h)
				require.NoError(t, shm.Unmap(mem))
			}
			_, err = Open(f, false)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestOpenRefusesAFileThatCouldShrink(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "table")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(1<<20))
	_, err = Open(f, false)
	assert.ErrorContains(t, err, "not sealed")
}

func TestTaskIDsGrowOverAllViews(t *testing.T) {
	table := newTestTable(t, 1, 1)
	dup, err := shm.ReadOnly(table.File())
	require.NoError(t, err)
	dup.Close()
	first, second := table.NextTaskID(), table.NextTaskID()
	assert.Equal(t, uint64(1), first)
	assert.Greater(t, second, first)
	assert.Zero(t, readOnly(t, table).NextTaskID(), "a reader has no ids to give")
}

func TestAReaderHasNoWorkersRow(t *testing.T) {
	view := readOnly(t, newTestTable(t, 1, 1))
	assert.Panics(t, func() { view.WorkerRow(0) })
}

// The sections lie one behind the other, each on cache lines of its own.
func TestSectionsDoNotOverlap(t *testing.T) {
	s, err := layoutOf(3, 5)
	require.NoError(t, err)
	table := newTestTable(t, 3, 5)
	assert.Len(t, table.indexes, 3)
	for _, size := range []int{headerSize, hotSize, lifeSize, indexSize, bitmapsSize, connSlotsSize} {
		assert.Zero(t, size%cacheLine)
	}
	assert.LessOrEqual(t, s.current+3*4, s.hot)
	assert.Equal(t, s.hot+s.rows*hotSize, s.lives)
	assert.Equal(t, s.lives+s.rows*lifeSize, s.indexes)
	assert.Equal(t, s.indexes+3*indexSize, s.maps)
	assert.Equal(t, s.maps+s.rows*bitmapsSize, s.conns)
	assert.Equal(t, s.conns+s.rows*connSlotsSize, s.record)
	assert.Equal(t, s.record+s.rows*5*recordSize, s.size)
}

// Status has a column for each counter, and each counter a column of its own.
func TestStatusShowsEachCounter(t *testing.T) {
	table := newTestTable(t, 1, 1)
	for i := range numCounters {
		table.indexes[0].counters[i].Store(uint64(100 + i))
	}
	s := reflect.ValueOf(table.Status()[0])
	shown := map[uint64]string{}
	for i := range s.NumField() {
		if v := s.Field(i); v.Kind() == reflect.Uint64 && v.Uint() >= 100 {
			assert.Empty(t, shown[v.Uint()])
			shown[v.Uint()] = s.Type().Field(i).Name
		}
	}
	assert.Len(t, shown, numCounters)
}
