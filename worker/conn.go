package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// A conn is one connection. Its reading goroutine takes packages. When the reader and all calls of
// the connection are done, the last of them closes it.
type conn struct {
	s       *Server
	nc      *net.UnixConn
	in      *protocol.Reader // nil before the greeting
	out     writer
	place   int           // of the connection in the row; -1: it has none
	opened  bool          // the first frame has arrived
	last    atomic.Uint64 // id of the last package that was read whole
	pending atomic.Int32  // 1 for the reader, 1 for each call without its answer
	stuck   bool          // its reader runs a task that is past its hard limit; Server.mu

	mu       sync.Mutex // for the reading deadline
	greeted  bool
	mayRead  time.Time // the drain's grace; zero: no limit
	midFrame bool
}

// serve reads until the connection ends. If a task that runs on this goroutine ends it, another
// goroutine goes on.
func (c *conn) serve() {
	done := false
	defer func() {
		if !done {
			c.s.wg.Go(c.serve)
		}
	}()
	if c.in != nil || c.greet() {
		c.read()
		c.s.callerGone(c)
	}
	done = true
	c.donePending()
}

// greet checks the peer's user and writes the greeting.
func (c *conn) greet() bool {
	if !c.s.admitsPeer(c.nc) || c.out.init(c.nc, &c.s.buffers, c.s.answerTimeout) != nil {
		return false
	}
	c.in = protocol.NewReader(c.nc, c.s.cfg.MaxPackageSize)
	c.in.Partial = c.partial
	b := c.s.buffers.get(0)
	b.b = append(b.b, c.s.greeting...)
	c.out.send(b, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greeted = true
	return true
}

// admitsPeer reports whether the peer belongs to this user or to root.
func (s *Server) admitsPeer(nc *net.UnixConn) bool {
	who, err := sys.Peer(nc)
	if err != nil {
		s.log.Error("cannot tell who connects", "worker", s.cfg.Index, "err", err)
		s.ownFailure(err)
		return false
	}
	return who.Trusted()
}

func (c *conn) read() {
	for {
		c.out.room()
		body, owned, err := c.in.Next()
		if err != nil {
			c.readEnded(err)
			return
		}
		if !c.take(body, owned) {
			c.shut()
			return
		}
	}
}

// take admits one package or refuses it. Its checks have the order that PROTOCOL.md gives. It
// returns false if the connection must read no further.
func (c *conn) take(body []byte, owned bool) bool {
	s := c.s
	c.open()
	s.noticeLarge(len(body))
	p, err := protocol.ParsePackage(body)
	if err != nil {
		c.illegal(err)
		return true
	}
	if last := c.last.Load(); p.ID <= last {
		c.refuse(p.ID, protocol.StatusIllegal, fmt.Sprintf("id %d does not grow, the last one was %d", p.ID, last))
		return false
	}
	fault := s.faultOf(p.Task)
	if fault == DieBeforeAccepting {
		s.dieBefore(c, p.ID)
		return false
	}
	c.last.Store(p.ID)
	typ, why := s.typeOf(p.Task)
	if typ == nil {
		c.refuse(p.ID, protocol.StatusIllegal, why)
		return true
	}
	now := sys.Now()
	if p.Expire != 0 && now >= p.Expire {
		s.cfg.Row.Expired()
		c.refuse(p.ID, protocol.StatusExpired, "the deadline had passed when the package was read")
		return true
	}
	if !s.cfg.Row.Admit() {
		c.refuse(p.ID, protocol.StatusBusy, "no slot is free")
		return true
	}
	k := c.newCall(&p, typ, now, fault)
	switch {
	case fault == DieAfterAccepting:
		s.cfg.Row.Begin(k.record) // so that nothing proves that the task did not begin
		s.Kill()
		k.complete()
		return false
	case p.Alone && !k.cancel && k.async:
		// The client sends its next package once it has its answer, so this goroutine must read on.
		if k.prepare(); k.ready {
			s.runners.run(k)
		}
	case k.inline:
		k.do()
	default:
		k.keepPayload(owned)
		s.runners.run(k)
	}
	return true
}

// illegal answers a body that is no package. If its id could be read, the package counts as read.
func (c *conn) illegal(err error) {
	var bad *protocol.Error
	if !errors.As(err, &bad) {
		bad = &protocol.Error{Status: protocol.StatusIllegal, Text: err.Error()}
	}
	if bad.ID > c.last.Load() {
		c.last.Store(bad.ID)
	}
	c.refuse(bad.ID, bad.Status, bad.Text)
}

// open takes a place for the connection in the row, at the first frame.
func (c *conn) open() {
	if !c.opened {
		c.opened = true
		c.place = c.s.cfg.Row.ConnOpen()
	}
}

// readEnded sends what the peer must know about the end of reading.
func (c *conn) readEnded(err error) {
	status, text := readFault(err, c.s.cfg.FrameTimeout)
	draining := c.s.isDraining()
	// A drain cuts off a frame that is on its way. That is no fault of the peer.
	if status == protocol.StatusPackageTooLarge || status != protocol.StatusOK && !draining {
		c.refuse(0, status, text)
		c.shut()
	}
	if draining {
		c.notice()
	}
}

// readFault returns the status for a reader's error, 0 if the stream ended between two frames or is
// lost.
func readFault(err error, frameTimeout time.Duration) (protocol.Status, string) {
	var bad *protocol.Error
	switch {
	case errors.As(err, &bad):
		return bad.Status, bad.Text
	case errors.Is(err, os.ErrDeadlineExceeded):
		return protocol.StatusProtocol, fmt.Sprintf("the rest of a frame did not come within %s", frameTimeout)
	}
	return protocol.StatusOK, ""
}

// shut makes the peer's writes fail and reads what it has written. So the peer is not blocked in a
// write and reads its answer, and closing does not reset the connection.
func (c *conn) shut() {
	discard(c.nc, c.s.cfg.FrameTimeout)
}

func discard(nc *net.UnixConn, within time.Duration) {
	if sys.CloseRead(nc) != nil || nc.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	// The connection is closed next, with or without an error.
	_, _ = io.Copy(io.Discard, nc)
}

// refuse answers a package that takes no slot.
func (c *conn) refuse(id uint64, status protocol.Status, text string) {
	c.out.send(c.s.failureFrame(id, status, text, 0), c.pending.Load() > 1)
}

// notice sends the id of the last package that was read to the peer.
func (c *conn) notice() {
	b := c.s.buffers.get(0)
	b.b = protocol.AppendNotice(b.b, c.last.Load())
	c.out.send(b, false)
}

// addPending counts an answer that is to be sent. It returns false if the connection has ended.
func (c *conn) addPending() bool {
	for {
		n := c.pending.Load()
		if n == 0 {
			return false
		}
		if c.pending.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// donePending ends what addPending counted. The last one closes the connection.
func (c *conn) donePending() {
	if c.pending.Add(-1) > 0 {
		return
	}
	if c.place >= 0 {
		c.s.cfg.Row.ConnClose(c.place)
	}
	// Everything was sent, or the connection is lost.
	_ = c.nc.Close()
	c.s.ended(c)
}

// partial arms the reading deadline while a frame is on its way.
func (c *conn) partial(begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.midFrame = begin
	c.setReadDeadline()
}

// readUntil sets the instant at which reading ends.
func (c *conn) readUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mayRead = t
	c.setReadDeadline()
}

func (c *conn) setReadDeadline() {
	until := c.mayRead
	if c.midFrame {
		if t := time.Now().Add(c.s.cfg.FrameTimeout); until.IsZero() || t.Before(until) {
			until = t
		}
	}
	// It fails only for a closed connection, and then the next read fails too.
	_ = c.nc.SetReadDeadline(until)
}

// hungUp waits until the connection ends, by the peer or by a failed write. It returns false if this
// system does not notice that.
func (c *conn) hungUp() bool {
	for {
		c.mu.Lock()
		c.midFrame, c.mayRead = false, time.Time{}
		c.setReadDeadline()
		c.mu.Unlock()
		err := sys.AwaitHangup(c.nc)
		if !errors.Is(err, os.ErrDeadlineExceeded) { // drain may set a deadline after the reset
			return err == nil || errors.Is(err, net.ErrClosed)
		}
	}
}

// drain ends the reading of new packages. On systems where closing the reading side is no barrier,
// it notifies the peer first, which may send on until it half-closes or the grace is over.
func (c *conn) drain() {
	if c.s.barrier {
		if sys.CloseRead(
			c.nc,
		) != nil { // the stream has ended, or a task has closed its descriptor: then only this wakes the reader
			c.readUntil(time.Unix(1, 0))
		}
		return
	}
	c.readUntil(time.Now().Add(c.s.cfg.DrainGrace))
	if !c.addPending() {
		return
	}
	c.mu.Lock()
	greeted := c.greeted
	c.mu.Unlock()
	if greeted {
		c.notice()
	}
	c.donePending()
}
