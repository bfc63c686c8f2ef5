package sharedstate

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/tasktype"
)

func TestFinishMovesWhatWasRunningToLost(t *testing.T) {
	table := newTestTable(t, 2, 8)
	before := time.Now()
	r := serving(t, table, 1, 4)
	for range 5 {
		require.True(t, r.Admit())
	}
	r.Release(Succeeded)
	r.Release(Failed)
	r.Release(ExpiredInSlot)
	_, ok := r.Ended(4)
	assert.False(t, ok)
	s := table.Status()[1]
	assert.WithinRange(t, s.StartUpTime, before, time.Now())
	assert.Equal(t, 1004, s.PID)

	r.Finish(End{Reason: tasktype.ReasonKilled, Signal: 9})
	r.Finish(End{Reason: tasktype.ReasonCrashed})
	table.SetRestarting(1, true, 1)
	assert.Equal(
		t,
		tasktype.WorkerStatus{
			Index:    1,
			Accepted: 5,
			Success:  1,
			Fail:     2,
			Lost:     2,
			Expired:  1,
			Restarts: 1,
			Degraded: true,
		},
		table.Status()[1],
	)
	e, ok := r.Ended(4)
	assert.True(t, ok)
	assert.Equal(t, End{Reason: tasktype.ReasonKilled, Signal: 9}, e)
	_, ok = r.Ended(5)
	assert.False(t, ok)
	_, ok = table.Current(1)
	assert.False(t, ok)

	r.Free()
	successor := serving(t, table, 1, 5)
	assert.NotEqual(t, r.Number(), successor.Number(), "the last freed is used last")
	require.True(t, successor.Admit())
	s = table.Status()[1]
	assert.Equal(t, []uint64{6, 1, 2, 2}, []uint64{s.Accepted, s.Success, s.Fail, s.Lost})
	assert.Equal(t, 1, s.Running)
	_, ok = r.Ended(4)
	assert.True(t, ok, "the end stays readable until the row is used again")
}

func TestARetiringWorkerHasItsOwnLine(t *testing.T) {
	table := newTestTable(t, 2, 8)
	old := serving(t, table, 0, 1)
	require.True(t, old.Admit())
	require.True(t, old.Admit())
	next := allocate(t, table, 0, 2)
	assert.Len(t, table.Status(), 2, "a worker that boots is not shown")
	next.SetPID(77)
	table.SetCurrent(0, next.parent)
	old.SetAccepting(false)
	old.Release(Succeeded)

	all := table.Status()
	require.Len(t, all, 3)
	assert.Equal(t, 77, all[0].PID)
	assert.Zero(t, all[0].Accepted)
	assert.Equal(t, []uint64{1, 2, 1}, []uint64{all[1].Generation, all[1].Accepted, all[1].Success})
	assert.Equal(t, 1, all[1].Running)
	assert.Equal(t, 1, all[2].Index)

	old.Finish(End{Reason: tasktype.ReasonCrashed})
	all = table.Status()
	require.Len(t, all, 2)
	assert.Equal(t, []uint64{2, 1, 1}, []uint64{all[0].Accepted, all[0].Success, all[0].Lost})
}

func TestRowsRunOut(t *testing.T) {
	table := newTestTable(t, 1, 1)
	var alive testRow
	for g := range uint64(10) {
		alive = allocate(t, table, 0, g)
	}
	_, err := table.Allocate(0, 11)
	assert.ErrorIs(t, err, ErrNoRow)
	alive.Free()
	_, err = table.Allocate(0, 11)
	assert.ErrorIs(t, err, ErrNoRow, "a row that lives is not given back")
}

// A reader sees half-written or foreign rows under churn. Rows are recycled
// 10,000 times: pid, generation and counters are always from one generation,
// and each process is counted once, also while its books are closed.
func TestReadersSeeOneGeneration_Row6(t *testing.T) {
	const recycles, rest = 10_000, 50
	table := newTestTable(t, 1, 4)
	view := readOnly(t, table)
	// Generation g accepts g%3+1 tasks before it is current: then it is seen with all of them.
	accepted := make([]uint64, recycles+1)
	for g := 1; g <= recycles; g++ {
		accepted[g] = accepted[g-1] + uint64(g%3+1)
	}
	var over atomic.Bool
	var seen atomic.Uint64
	reader := make(chan struct{})
	go func() {
		defer close(reader)
		for !over.Load() {
			all := view.Status()
			var got, sum uint64
			for _, s := range all {
				got += s.Accepted
				sum += s.Success + s.Fail + s.Lost + uint64(s.Running)
			}
			g := all[0].Generation
			if want := accepted[g]; got != want || sum != want || g > 0 && all[0].PID != int(1000+g) {
				t.Errorf("accepted %d, want %d: %+v", got, want, all)
				return
			}
			seen.Add(1)
		}
	}()
	var old testRow
	for g := uint64(1); g <= recycles && !t.Failed(); g++ {
		r := allocate(t, table, 0, g)
		r.SetPID(int(1000 + g))
		for range g%3 + 1 {
			r.Admit()
		}
		for range g % 3 {
			r.Release(Succeeded)
		}
		table.SetCurrent(0, r.parent)
		if g > 1 {
			old.Finish(End{Reason: tasktype.ReasonCrashed})
			old.Free()
		}
		old = r
		if g%rest == 0 {
			before := seen.Load()
			eventually(t, "the reader keeps up", func() bool { return seen.Load() > before || t.Failed() })
		}
	}
	over.Store(true)
	<-reader
}

func TestAParentKilledWhileWritingHoldsUpNoReader(t *testing.T) {
	table := newTestTable(t, 1, 4)
	r := serving(t, table, 0, 1)
	table.seq.Add(1)
	began := time.Now()
	assert.Equal(t, 1001, table.Status()[0].PID)
	_, ok := r.Ended(1)
	assert.False(t, ok)
	assert.Less(t, time.Since(began), limit)
}
