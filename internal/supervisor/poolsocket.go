package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/shm"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
)

const (
	maxAttached  = 4096 // connections to one pool's control socket; more are closed at once
	maxHello     = 64 << 10
	acceptPause  = 50 * time.Millisecond // after an accept that failed because of missing descriptors
	helloTimeout = time.Second           // bounds how long a peer takes to receive the table
)

// A poolSocket sends the table, for reading, and the pool's settings to processes that attach.
// While the connection is open, the pool's parent lives.
type poolSocket struct {
	path     string
	bind     func(path string) (*net.UnixListener, error)
	table    *os.File // read-only
	settings []byte

	mu       sync.Mutex
	listener *net.UnixListener
	conns    map[*net.UnixConn]struct{}
	closed   bool
	wait     sync.WaitGroup
}

func openPoolSocket(
	bind func(path string) (*net.UnixListener, error),
	path string,
	t *sharedstate.Table,
	c control.Settings,
) (*poolSocket, error) {
	settings, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("pool socket: %w", err)
	}
	s := &poolSocket{path: path, bind: bind, settings: settings, conns: make(map[*net.UnixConn]struct{})}
	if s.listener, err = bind(path); err != nil {
		return nil, err
	}
	if s.table, err = shm.ReadOnly(t.File()); err != nil {
		s.listener.Close()
		return nil, err
	}
	l := s.listener
	s.wait.Go(func() { s.accept(l) })
	return s, nil
}

// ServeTable makes Attach find a pool that no Supervisor runs. It listens on the control socket of
// the pool called name in dir until stop is called. No other pool in dir may have that name. The
// caller removes the socket's file.
func ServeTable(dir, name string, t *sharedstate.Table, c control.Settings) (stop func(), err error) {
	s, err := openPoolSocket(sys.Listen, poolSocketPath(dir, name), t, c)
	if err != nil {
		return nil, err
	}
	return s.close, nil
}

// rebind listens on the path again after its file was removed. If that fails, the pool runs on, but
// other processes cannot attach to it.
func (s *poolSocket) rebind() {
	l, err := s.bind(s.path)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.Close()
	s.listener = l
	s.wait.Go(func() { s.accept(l) })
}

// accept accepts peers. It does no I/O with them, so that a silent peer does not hold up the next
// one.
func (s *poolSocket) accept(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		if !s.add(c) {
			c.Close()
			continue
		}
		s.wait.Go(func() {
			defer s.remove(c)
			s.serve(c)
		})
	}
}

func (s *poolSocket) add(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= maxAttached {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *poolSocket) remove(c *net.UnixConn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.Close()
}

// serve sends the table to the peer and returns when the peer is gone. It ignores what the peer
// sends.
func (s *poolSocket) serve(c *net.UnixConn) {
	if _, err := trustedPeer(c); err != nil {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(helloTimeout))
	if err := sys.SendFile(c, s.settings, s.table); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c)
}

func (s *poolSocket) close() {
	s.mu.Lock()
	s.closed = true
	s.listener.Close()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
	s.table.Close()
}

// trustedPeer returns the process at the other end, which must belong to the same user or to root.
func trustedPeer(c *net.UnixConn) (pid int, err error) {
	peer, err := sys.Peer(c)
	if err != nil {
		return 0, err
	}
	if err := peer.Check(); err != nil {
		return 0, err
	}
	return peer.PID, nil
}

// An Attachment is a connection to the pool of another process, or of this one.
type Attachment struct {
	Table    *sharedstate.Table // read-only
	Settings control.Settings
	Own      bool            // the pool's parent is this process
	Gone     <-chan struct{} // closed when the pool's parent is gone, and by Close
	conn     *net.UnixConn
}

// Attach connects to the pool called name in dir through its control socket. It fails if there is
// no such pool, or if the pool belongs to another user.
func Attach(ctx context.Context, dir, name string) (*Attachment, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", poolSocketPath(dir, name))
	var dial *net.OpError
	if errors.As(err, &dial) {
		err = dial.Err // the caller knows the name and the directory
	}
	if err != nil {
		return nil, fmt.Errorf("no pool answers: %w", err)
	}
	c := conn.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	a, err := receive(c)
	if !stop() { // the deadline may be set later, so the connection is useless
		if err == nil {
			a.Table.Close()
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetReadDeadline(time.Time{})
	gone := make(chan struct{})
	a.Gone, a.conn = gone, c
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, c)
	}()
	return a, nil
}

func receive(c *net.UnixConn) (*Attachment, error) {
	parent, err := trustedPeer(c)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, maxHello)
	n, f, err := sys.RecvFile(c, buf)
	if err != nil {
		return nil, err
	}
	a := Attachment{Own: parent == os.Getpid()}
	if err := json.Unmarshal(buf[:n], &a.Settings); err != nil {
		return nil, errors.Join(fmt.Errorf("the pool's settings: %w", err), f.Close())
	}
	if a.Table, err = sharedstate.Open(f, false); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &a, nil
}

// Close closes the connection. The table stays readable.
func (a *Attachment) Close() error {
	err := errors.Join(a.conn.Close(), a.Table.Close())
	<-a.Gone
	return err
}
