package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// The caller of a task with the cancel mark ends its connection while the worker drains: the task's
// context ends as it does without a drain, and the other tasks run on.
func TestDrainNoticesThatTheCallerIsGone_Found11(t *testing.T) {
	if !sys.BarrierRead {
		t.Skip("the end of a whole connection is not noticed here")
	}
	marked := protocol.Package{Task: []byte("obedient"), Meta: map[string]string{protocol.MetaCancel: "1"}}
	begin := func(t *testing.T) (*rig, *peer) {
		r := start(t, nil)
		p := r.dial()
		p.send(marked, marked, protocol.Package{Task: []byte("block")})
		for range 3 {
			r.awaitEntered()
		}
		return r, p
	}
	check := func(t *testing.T, r *rig) {
		r.eventually("only the unmarked task runs", func() bool { return r.row.Running() == 1 })
		for _, f := range r.told() {
			require.ErrorIs(t, f.Err, ErrCallerGone)
		}
		close(r.gate)
		require.NoError(t, r.ended())
		require.Equal(t, count{accepted: 3, success: 1, fail: 2}, r.still())
	}
	t.Run("between two frames", func(t *testing.T) {
		r, p := begin(t)
		r.begin(-1)
		p.notice(3)
		require.NoError(t, p.nc.Close())
		check(t, r)
	})
	t.Run("with unread answers", func(t *testing.T) {
		r, p := begin(t)
		r.begin(-1)
		r.eventually("the readers have ended", func() bool { return r.readersEnded() })
		require.NoError(t, p.nc.Close())
		check(t, r)
	})
	t.Run("in a frame", func(t *testing.T) {
		r, p := begin(t)
		p.raw(header(9)[:2])
		r.begin(-1)
		p.notice(3)
		require.NoError(t, p.nc.Close())
		check(t, r)
	})
	t.Run("just before the drain", func(t *testing.T) {
		r, p := begin(t)
		require.NoError(t, p.nc.Close())
		r.begin(-1)
		check(t, r)
	})
}

// Two tasks with the mark end with their results. The wait for the caller's end holds up neither
// the answers nor the end of the drain.
func TestADrainWithMarkedTasksEnds_Found11(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	marked := protocol.Package{Task: []byte("block"), Meta: map[string]string{protocol.MetaCancel: "1"}}
	p.send(marked, marked)
	r.awaitEntered()
	r.awaitEntered()
	r.begin(-1)
	p.notice(2)
	close(r.gate)
	for range 2 {
		require.Equal(t, "done", valueOf(t, p.next()))
	}
	p.closed()
	require.NoError(t, r.ended())
}

// readersEnded reports whether every connection waits only for the answers of its three calls.
func (r *rig) readersEnded() bool {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for c := range r.server.conns {
		if c.pending.Load() != 3 {
			return false
		}
	}
	return true
}
