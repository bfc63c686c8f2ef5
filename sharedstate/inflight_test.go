package sharedstate

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/tasktype"
)

func TestTasksInFlightAreListed(t *testing.T) {
	table := newTestTable(t, 1, 2000)
	r := serving(t, table, 0, 1)
	long := strings.Repeat("n", 60)
	before := sys.Now()
	first := r.Record(11, 111, "pkg.First", sys.Now())
	second := r.Record(12, 112, long, sys.Now())
	after := sys.Now()
	tasks := readOnly(t, table).rowAt(r.Number()).Tasks()
	require.Len(t, tasks, 2)
	assert.Equal(t, uint64(11), tasks[0].TaskID)
	assert.Equal(t, "pkg.First", tasks[0].Name)
	assert.Equal(t, long[:48], tasks[1].Name)
	for _, task := range tasks {
		assert.GreaterOrEqual(t, task.Started, before)
		assert.LessOrEqual(t, task.Started, after)
	}
	r.Forget(first)
	r.Finish(End{Reason: tasktype.ReasonCrashed})
	r.Free()
	tasks = r.Tasks()
	require.Len(t, tasks, 1, "what ran when it died stays readable")
	assert.Equal(t, uint64(12), tasks[0].TaskID)
	assert.Equal(t, 1, second)

	for range table.Rows() {
		next := serving(t, table, 0, 2)
		assert.Empty(t, next.Tasks(), "row %d", next.Number())
		next.Finish(End{Reason: tasktype.ReasonCrashed})
		next.Free()
	}
}

func TestRecordsRunOut(t *testing.T) {
	for _, maxRunning := range []int{1, 64, 100, 5000} {
		t.Run(fmt.Sprint(maxRunning), func(t *testing.T) {
			table := newTestTable(t, 1, maxRunning)
			r := serving(t, table, 0, 1)
			places := min(maxRunning, 1024)
			for i := range places {
				require.Equal(t, i, r.Record(uint64(i+1), 7, "t", sys.Now()))
			}
			assert.Equal(t, -1, r.Record(1<<40, 7, "t", sys.Now()))
			r.Forget(-1)
			assert.Len(t, r.Tasks(), places)
			r.Forget(places / 2)
			assert.Equal(t, places/2, r.Record(1<<40, 7, "again", sys.Now()))
		})
	}
}

func TestRecordsOfConcurrentTasksStayApart(t *testing.T) {
	table := newTestTable(t, 1, 2)
	name := func(id uint64) string { return strings.Repeat(fmt.Sprintf("%8d", id%1e8), 6) }
	r := serving(t, table, 0, 1)
	var all sync.WaitGroup
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			for _, task := range r.Tasks() {
				if task.Name != name(task.TaskID) {
					t.Errorf("record %+v", task)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 2 {
		all.Go(func() {
			for range 20_000 {
				id := table.NextTaskID()
				r.Forget(r.Record(id, id, name(id), sys.Now()))
			}
		})
	}
	all.Wait()
	close(stop)
	reader.Wait()
	assert.Empty(t, r.Tasks())
}

func TestLastReadFindsTheConnection(t *testing.T) {
	table := newTestTable(t, 1, 4)
	r := serving(t, table, 0, 1)
	const mine, other = 7 << 32, 8 << 32
	a, b := r.ConnOpen(), r.ConnOpen()
	r.ConnRead(a, mine|3)
	r.ConnRead(b, other|9)
	r.ConnRead(a, mine|4)
	dead := readOnly(t, table).rowAt(r.Number())
	last, ok := dead.LastRead(mine | 100)
	assert.True(t, ok)
	assert.Equal(t, uint64(mine|4), last)
	_, ok = dead.LastRead(9 << 32)
	assert.False(t, ok)

	r.ConnClose(a)
	_, ok = dead.LastRead(mine | 100)
	assert.True(t, ok, "still true")
	assert.Equal(t, a, r.ConnOpen())
	_, ok = dead.LastRead(mine | 100)
	assert.False(t, ok)
}

func TestConnectionPlacesRunOut(t *testing.T) {
	table := newTestTable(t, 1, 4)
	r := serving(t, table, 0, 1)
	for i := range 128 {
		require.Equal(t, i, r.ConnOpen())
	}
	none := r.ConnOpen()
	assert.Equal(t, -1, none)
	r.ConnRead(none, 5)
	r.ConnClose(none)
	r.ConnClose(100)
	assert.Equal(t, 100, r.ConnOpen())
}

func BenchmarkTaskInTheTable(b *testing.B) {
	table := newTestTable(b, 1, 128)
	r := serving(b, table, 0, 1)
	b.ReportAllocs()
	for b.Loop() {
		r.Admit()
		r.Forget(r.Record(table.NextTaskID(), 7, "github.com/example/program.Digest", sys.Now()))
		r.Release(Succeeded)
	}
}

func TestTasksThatHaveNotBegun(t *testing.T) {
	r := serving(t, newTestTable(t, 1, 8), 0, 1)
	waits, runs := r.Record(1, 101, "t", sys.Now()), r.Record(2, 102, "t", sys.Now())
	r.Begin(runs)
	r.Begin(-1)
	assert.True(t, r.NotBegun(101))
	assert.False(t, r.NotBegun(102), "it runs")
	assert.False(t, r.NotBegun(103), "no record")
	for _, task := range r.Tasks() {
		assert.Positive(t, task.Started)
	}
	r.Forget(waits)
	assert.False(t, r.NotBegun(101), "it is over")
}
