package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// begin begins a drain without waiting for its end.
func (r *rig) begin(within time.Duration) {
	r.t.Helper()
	select {
	case <-r.server.Drain(within, false):
	case <-time.After(waitLimit):
		r.t.Fatal("the server did not stop accepting")
	}
	require.False(r.t, r.row.Accepting())
}

func (r *rig) ended() error {
	r.t.Helper()
	select {
	case err := <-r.served:
		r.served <- nil
		return err
	case <-time.After(waitLimit):
		r.t.Fatalf("Serve did not return\n%s", stacks())
		return nil
	}
}

func TestDrainOfAnIdleConnection(t *testing.T) {
	r := start(t, nil)
	require.True(t, r.row.Accepting())
	fresh, used := r.dial(), r.dial()
	used.works()
	r.begin(-1)
	fresh.notice(0)
	fresh.closed()
	used.notice(1)
	used.closed()
	_, err := used.nc.Write([]byte{0})
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, r.ended())
}

// gunicorn #3661: the connection count leaks on every close that the server starts; shutdown
// waits the full grace. Drain right after 1,000 calls ended by the server, by the client, by
// time-out: it returns at once.
func TestDrainReturnsAtOnce_Row7(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.FrameTimeout = 20 * time.Millisecond })
	for i := range 1000 {
		p := r.dial()
		switch i % 4 {
		case 0: // by the server, for a bad header
			p.works()
			p.raw(header(0))
			require.Equal(t, protocol.StatusProtocol, p.next().Status)
		case 1: // by the client, with its answer unread
			p.send(protocol.Package{Task: []byte("echo"), Payload: text("x")})
			require.NoError(t, p.nc.Close())
		case 2: // by time-out, in the middle of a frame
			if i%40 == 2 {
				p.raw([]byte{0, 0})
				require.Equal(t, protocol.StatusProtocol, p.next().Status)
			}
		default: // not at all
			p.works()
		}
	}
	require.NoError(t, r.drain(time.Hour))
	r.still()
}

func TestDrainAnswersWhatRuns(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) {
			r := start(t, nil)
			p := r.dial()
			p.works()
			id := p.send(protocol.Package{Task: []byte("block"), Alone: alone})
			r.awaitEntered()
			r.begin(-1)
			if !alone { // whose reader is free tells at once
				p.notice(id)
			}
			close(r.gate)
			require.Equal(t, "done", valueOf(t, p.next()))
			if alone {
				p.notice(id)
			}
			p.closed()
			require.NoError(t, r.ended())
			require.Equal(t, count{accepted: 2, success: 2}, r.still())
		})
	}
}

// What the worker had not read when the drain began is read to the end, run or refused, and
// answered.
func TestDrainReadsWhatIsBuffered(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block"), Alone: true}) // holds the reader
	r.awaitEntered()
	var batch []protocol.Package
	for range 10 {
		batch = append(batch, protocol.Package{Task: []byte("block"), Type: protocol.Async})
	}
	batch = append(batch, protocol.Package{Task: []byte("nobody")})
	last := p.send(batch...)
	p.raw(frameOf(protocol.Package{ID: last + 1, Task: []byte("echo")})[:9]) // the drain cuts this one
	r.begin(-1)
	r.gate <- struct{}{}
	statuses := map[protocol.Status]int{}
	for range 12 + 1 { // the answers, and somewhere between the last of them the notice
		answer := p.next()
		if read, ok := protocol.ParseNotice(&answer); ok {
			require.Equal(t, last, read)
			continue
		}
		statuses[answer.Status]++
	}
	require.Equal(
		t,
		map[protocol.Status]int{0: 1 + maxRunning, protocol.StatusBusy: 10 - maxRunning, protocol.StatusIllegal: 1},
		statuses,
	)
	p.closed()
	close(r.gate)
	require.NoError(t, r.ended())
	r.still()
}

// gunicorn #2409: a stop resets connections that wait. Under constant load a drain loses no
// package: each was answered, or is above the notice's id, or could not be written.
func TestDrainUnderLoadLosesNothing_Row58(t *testing.T) {
	for range 5 {
		r := start(t, nil)
		var wg sync.WaitGroup
		begun := make(chan struct{}, 8)
		for range 8 {
			p := r.dial()
			wg.Go(func() {
				begun <- struct{}{}
				assert.NoError(t, untilNotice(p))
			})
		}
		for range 8 {
			<-begun
		}
		r.begin(-1)
		wg.Wait()
		require.NoError(t, r.ended())
		r.still()
	}
}

func untilNotice(p *peer) error {
	sent := make(chan uint64, 1)
	go func() { // writes until the worker takes no more
		var id uint64
		for {
			if _, err := p.nc.Write(frameOf(protocol.Package{ID: id + 1, Task: []byte("echo"), Payload: text("x")})); err != nil {
				sent <- id
				return
			}
			id++
		}
	}()
	answered := map[uint64]bool{}
	var last uint64
	for {
		got, err := p.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n, ok := protocol.ParseNotice(&got); ok {
			last = n
			continue
		}
		answered[got.ID] = true
	}
	if id := <-sent; last < id || last > id+1 || uint64(len(answered)) != last {
		return fmt.Errorf("%d written whole, notice says %d, %d answered", id, last, len(answered))
	}
	return nil
}

// The worker says who of its tasks did not end; their contexts ended a fifth of the limit
// before.
func TestDrainIsBounded_Row55(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	obedient := p.send(protocol.Package{Task: []byte("obedient")})
	stubborn := p.send(protocol.Package{Task: []byte("block")})
	ids := []uint64{r.awaitEntered().TaskID, r.awaitEntered().TaskID}
	r.begin(time.Second)
	p.notice(stubborn)
	got := p.next()
	require.Equal(t, obedient, got.ID)
	require.Equal(t, ErrDrain.Error(), got.Text())
	err := r.ended()
	require.ErrorContains(t, err, "block for ")
	require.ErrorContains(t, err, fmt.Sprint(max(ids[0], ids[1])))
	require.NotContains(t, err.Error(), "obedient")
	p.closed()
	require.Equal(t, 1, r.row.Running())
	close(r.gate)
	r.still()
}

func TestDrainCanBeShortened(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.send(protocol.Package{Task: []byte("obedient")})
	r.awaitEntered()
	r.begin(-1)
	p.notice(1)
	r.begin(time.Hour)
	r.begin(time.Second)
	r.begin(time.Hour)
	require.Equal(t, ErrDrain.Error(), p.said())
	require.NoError(t, r.ended())
}

func TestTasksSeeTheDrain(t *testing.T) {
	r := start(t, nil)
	r.add("early", func(ctx context.Context, info Info) (any, error) {
		r.entered <- info
		<-Draining(ctx)
		r.entered <- info
		<-r.gate
		return ctx.Err() == nil, nil
	})
	p := r.dial()
	p.send(protocol.Package{Task: []byte("early")})
	r.awaitEntered()
	r.begin(-1)
	r.awaitEntered()
	p.notice(1)
	close(r.gate)
	require.Equal(t, true, valueOf(t, p.next()))
}

func TestDrainBeforeServe(t *testing.T) {
	r := newRig(t, nil)
	stopped := r.server.Drain(time.Second, false)
	r.server.Ready()
	require.False(t, r.row.Accepting())
	go func() { r.served <- r.server.Serve() }()
	<-stopped
	require.NoError(t, r.ended())
}

// Where closing the reading side is no barrier, the peer is told first; what it still sends
// until it half-closes is run.
func TestDrainWithoutABarrier(t *testing.T) {
	grace := func(d time.Duration) func(*rig) {
		return func(r *rig) { r.cfg.DrainGrace = d }
	}
	begin := func(t *testing.T, d time.Duration) (*rig, *peer) {
		r := newRig(t, grace(d))
		r.server.barrier = false
		r.server.Ready()
		go func() { r.served <- r.server.Serve() }()
		p := r.dial()
		p.works()
		return r, p
	}
	t.Run("until the peer half-closes", func(t *testing.T) {
		r, p := begin(t, time.Hour)
		r.begin(-1)
		p.notice(1)
		p.works()
		require.NoError(t, p.nc.CloseWrite())
		p.notice(2)
		p.closed()
		require.NoError(t, r.ended())
	})
	t.Run("until the grace is over", func(t *testing.T) {
		r, p := begin(t, 100*time.Millisecond)
		r.begin(-1)
		p.notice(1)
		p.raw([]byte{0, 0, 0}) // a frame that never ends
		p.notice(1)
		p.closed()
		require.NoError(t, r.ended())
	})
	t.Run("at the end of the pool", func(t *testing.T) {
		r := newRig(t, grace(time.Hour))
		r.server.barrier = false
		p := r.connect()
		p.send(protocol.Package{Task: []byte("echo")})
		require.NoError(t, p.nc.CloseWrite())
		r.server.Drain(time.Second, true)
		go func() { r.served <- r.server.Serve() }()
		p.greet()
		p.notice(0)
		require.Equal(t, protocol.StatusBusy, p.next().Status)
		p.notice(1)
		p.closed()
		require.NoError(t, r.ended())
	})
}

// A listener that is closed under the server ends it, after its tasks.
func TestListenerThatIsLost(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	require.NoError(t, r.cfg.Listener.Close())
	p.notice(1)
	close(r.gate)
	require.Equal(t, "done", valueOf(t, p.next()))
	require.ErrorIs(t, r.ended(), net.ErrClosed)
	// For the rig's own end.
	var err error
	r.cfg.Listener, err = sys.Listen(r.path + "2")
	require.NoError(t, err)
}

// The drain closes the worker's reading side: that is not the caller's end.
func TestDrainDoesNotCancelMarkedTasks(t *testing.T) {
	r := start(t, nil)
	r.add("look", func(ctx context.Context, info Info) (any, error) {
		r.entered <- info
		<-r.gate
		return ctx.Err() == nil, nil
	})
	p := r.dial()
	p.send(protocol.Package{Task: []byte("look"), Meta: map[string]string{protocol.MetaCancel: "1"}})
	r.awaitEntered()
	r.begin(-1)
	p.notice(1)
	r.eventually("the reader has ended", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		for c := range r.server.conns {
			return c.pending.Load() == 1
		}
		return false
	})
	close(r.gate)
	require.Equal(t, true, valueOf(t, p.next()))
}

// A task closes descriptors that are not its own, a connection's among them: its reader would wait without end.
func TestDrainEndsAConnectionWhoseDescriptorIsClosed(t *testing.T) {
	if !sys.BarrierRead {
		t.Skip("the drain has a grace here")
	}
	r := start(t, nil)
	p := r.dial()
	p.works()
	r.server.mu.Lock()
	for c := range r.server.conns {
		raw, err := c.nc.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) { _ = syscall.Close(int(fd)) }))
	}
	r.server.mu.Unlock()
	p.closed()
	require.NoError(t, r.drain(-1))
}
