package worker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/tasktype"
)

// requesting makes a rig's server send its requests.
func requesting(limits Recycle, requests chan tasktype.Reason) func(*rig) {
	return func(r *rig) {
		r.cfg.Recycle = limits
		r.cfg.OnRecycle = func(reason tasktype.Reason) { requests <- reason }
	}
}

func TestASuccessorIsWantedOnce(t *testing.T) {
	for _, c := range []struct {
		reason tasktype.Reason
		limits Recycle
	}{
		{tasktype.ReasonRecycledTasks, Recycle{MaxTasks: 1}},
		{tasktype.ReasonRecycledAge, Recycle{MaxAge: time.Millisecond}},
		{tasktype.ReasonRecycledMemory, Recycle{MaxMemory: 1}},
		{tasktype.ReasonRecycledTasks, Recycle{MaxTasks: 1, MaxMemory: 1, MaxAge: time.Hour}},
	} {
		t.Run(string(c.reason), func(t *testing.T) {
			requests := make(chan tasktype.Reason, 100)
			r := start(t, requesting(c.limits, requests))
			p := r.dial()
			for range 5 {
				p.send(protocol.Package{Task: []byte("echo")})
				require.True(t, p.next().OK)
			}
			require.Equal(t, c.reason, <-requests)
			p.send(protocol.Package{Task: []byte("echo")})
			require.True(t, p.next().OK, "it serves on")
			require.NoError(t, r.drain(time.Second))
			require.Empty(t, requests)
		})
	}
}

func TestADrainingWorkerWantsNoSuccessor(t *testing.T) {
	requests := make(chan tasktype.Reason, 100)
	r := start(t, requesting(Recycle{MaxTasks: 1}, requests))
	p := r.dial()
	id := p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	r.server.Drain(time.Minute, false)
	close(r.gate)
	require.True(t, p.answer(id).OK)
	require.NoError(t, r.drain(time.Minute))
	require.Empty(t, requests)
}

func TestRecycleLimitsAreSpreadByATenth(t *testing.T) {
	seen := map[int64]bool{}
	for range 1000 {
		n := spread(100)
		require.GreaterOrEqual(t, n, int64(100))
		require.LessOrEqual(t, n, int64(110))
		seen[n] = true
	}
	require.Len(t, seen, 11)
	require.EqualValues(t, 1, spread(1))
	require.EqualValues(t, math.MaxInt64, spread(0), "no limit")
	require.EqualValues(t, math.MaxInt64, max(spread(math.MaxInt64), spread(math.MaxInt64-1)), "no overflow")
}
