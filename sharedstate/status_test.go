package sharedstate

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

	r.Finish(End{How: 3, Signal: 9})
	r.Finish(End{How: 4})
	table.SetRestarting(1, true, 1)
	assert.Equal(t, Status{Index: 1, Accepted: 5, Success: 1, Fail: 2, Lost: 2, Expired: 1, Restarts: 1, Degraded: true}, table.Status()[1])
	e, ok := r.Ended(4)
	assert.True(t, ok)
	assert.Equal(t, End{How: 3, Signal: 9}, e)
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
	next, err := table.Allocate(0, 2)
	require.NoError(t, err)
	assert.Len(t, table.Status(), 2, "a worker that boots is not shown")
	next.SetPID(77)
	table.SetCurrent(0, next)
	old.SetAccepting(false)
	old.Release(Succeeded)

	all := table.Status()
	require.Len(t, all, 3)
	assert.Equal(t, 77, all[0].PID)
	assert.Zero(t, all[0].Accepted)
	assert.Equal(t, []uint64{1, 2, 1}, []uint64{all[1].Generation, all[1].Accepted, all[1].Success})
	assert.Equal(t, 1, all[1].Running)
	assert.Equal(t, 1, all[2].Index)

	old.Finish(End{How: 1})
	all = table.Status()
	require.Len(t, all, 2)
	assert.Equal(t, []uint64{2, 1, 1}, []uint64{all[0].Accepted, all[0].Success, all[0].Lost})
}

func TestRowsRunOut(t *testing.T) {
	table := newTestTable(t, 1, 1)
	for g := range uint64(10) {
		_, err := table.Allocate(0, g)
		require.NoError(t, err)
	}
	_, err := table.Allocate(0, 11)
	assert.ErrorIs(t, err, ErrNoRow)
	table.RowAt(3).Free()
	_, err = table.Allocate(0, 11)
	assert.ErrorIs(t, err, ErrNoRow, "a row that lives is not given back")
}

// A reader sees half-written or foreign rows under churn. Rows are recycled
// 10,000 times: pid, generation and counters are always from one generation.
func TestReadersSeeOneGeneration_Row6(t *testing.T) {
	const recycles = 10_000
	table := newTestTable(t, 1, 4)
	view := readOnly(t, table)
	// Generation g accepts g%3+1 tasks, the last of which is lost.
	sums := make([]uint64, recycles+1)
	for g := 1; g <= recycles; g++ {
		sums[g] = sums[g-1] + uint64(g%3+1)
	}
	var over atomic.Bool
	var readers sync.WaitGroup
	var seen atomic.Uint64
	for range 2 {
		readers.Go(func() {
			for !over.Load() {
				s := view.Status()[0]
				g := s.Generation
				if g == 0 {
					continue // none is current
				}
				seen.Add(1)
				if s.PID != int(1000+g) || s.Accepted < sums[g-1] || s.Accepted > sums[g] || s.Lost != g-1 {
					t.Errorf("torn: %+v", s)
					return
				}
			}
		})
	}
	for g := uint64(1); g <= recycles; g++ {
		r := serving(t, table, 0, g)
		for range g%3 + 1 {
			r.Admit()
		}
		for range g % 3 {
			r.Release(Succeeded)
		}
		r.Finish(End{How: 1})
		r.Free()
	}
	eventually(t, "the readers saw some", func() bool { return seen.Load() > 0 || t.Failed() })
	over.Store(true)
	readers.Wait()
	s := table.Status()[0]
	assert.Equal(t, []uint64{sums[recycles], recycles}, []uint64{s.Accepted, s.Lost})
}

func TestTheSumHoldsWhileBooksAreClosed(t *testing.T) {
	table := newTestTable(t, 1, 4)
	view := readOnly(t, table)
	var closing atomic.Bool
	var over atomic.Bool
	reader := make(chan struct{})
	var total atomic.Uint64
	go func() {
		defer close(reader)
		for !over.Load() {
			before := total.Load()
			if !closing.Load() {
				continue
			}
			var got, sum uint64
			for _, s := range view.Status() {
				got += s.Accepted
				sum += s.Success + s.Fail + s.Lost + uint64(s.Running)
			}
			if closing.Load() && total.Load() == before && (got != before || sum != before) {
				t.Errorf("accepted %d, sum %d, want %d", got, sum, before)
				return
			}
		}
	}()
	old := serving(t, table, 0, 1)
	for g := uint64(2); g < 2000; g++ {
		require.True(t, old.Admit())
		require.True(t, old.Admit())
		old.Release(Failed)
		total.Add(2)
		closing.Store(true)
		next := serving(t, table, 0, g)
		old.Finish(End{How: 1})
		old.Free()
		closing.Store(false)
		old = next
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
	assert.Less(t, time.Since(began), 5*time.Second)
}
