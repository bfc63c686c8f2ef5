package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

// A connection that no worker has accepted is the successor's.
func TestBacklogIsLeftToTheSuccessor(t *testing.T) {
	r := start(t, nil)
	require.NoError(t, r.drain(time.Second))
	p := r.connect()
	p.send(protocol.Package{Task: []byte("echo"), Payload: text("x")})
	require.NoError(t, r.cfg.Listener.SetDeadline(time.Time{}))
	next := New(r.cfg)
	next.Ready()
	served := make(chan error, 1)
	go func() { served <- next.Serve() }()
	p.greet()
	require.Equal(t, "x", valueOf(t, p.next()))
	<-next.Drain(time.Second, false)
	require.NoError(t, <-served)
}

// At the end of the pool every package in the backlog is answered with -2, before the worker
// says that it has stopped.
func TestEndOfThePoolRefusesTheBacklog(t *testing.T) {
	r := newRig(t, nil)
	waiting := backlog(r)
	stopped := r.server.Drain(time.Second, true)
	go func() { r.served <- r.server.Serve() }()
	<-stopped
	require.NoError(t, r.ended())
	refused(t, waiting)
	require.Zero(t, r.still())
}

func TestRefuse(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.Index = 5 })
	require.NoError(t, r.drain(time.Second))
	waiting := backlog(r)
	Refuse(r.cfg.Listener, 5, protocol.DefaultPackageSize, 5*time.Second)
	refused(t, waiting)
	// The listener works on.
	p := r.connect()
	nc, err := r.cfg.Listener.AcceptUnix()
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	require.NoError(t, p.nc.Close())
}

// backlog connects peers that no worker accepts yet: one with three packages, one that says
// nothing, one with half a frame, and one with a header over the limit.
func backlog(r *rig) []*peer {
	peers := []*peer{r.connect(), r.connect(), r.connect(), r.connect()}
	p := protocol.Package{Task: []byte("echo"), Payload: text("x")}
	peers[0].send(p, p, p)
	peers[2].raw([]byte{0, 0})
	peers[3].raw(header(1 << 30))
	return peers
}

func refused(t *testing.T, peers []*peer) {
	t.Helper()
	for _, p := range peers {
		p.greet()
	}
	for id := range uint64(3) {
		got := peers[0].next()
		require.Equal(t, id+1, got.ID)
		require.Equal(t, protocol.StatusBusy, got.Status)
	}
	peers[0].notice(3)
	peers[1].notice(0)
	peers[2].notice(0)
	require.Equal(t, protocol.StatusPackageTooLarge, peers[3].next().Status)
	peers[3].notice(0)
	for _, p := range peers {
		p.closed()
	}
}
