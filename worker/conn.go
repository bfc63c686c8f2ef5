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

// A conn is one connection. Its reading goroutine takes packages; whoever pays the last of what
// is owed, that goroutine or a call, closes it.
type conn struct {
	s      *Server
	nc     *net.UnixConn
	in     *protocol.Reader // nil before the greeting
	out    writer
	place  int           // among the row's connections; -1: none
	opened bool          // the first frame has come
	last   atomic.Uint64 // the last id that was read whole
	owed   atomic.Int32  // 1 for the reader, 1 for each call without its answer
	stuck  bool          // its reader runs a task that is past its hard limit; Server.mu

	mu       sync.Mutex // for the reading deadline
	greeted  bool
	mayRead  time.Time // the drain's grace; zero: no limit
	midFrame bool
}

// serve reads until the connection's end. A task that runs on this goroutine may end it;
// another one goes on then.
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
	c.pay()
}

// greet lets the peer in, if it is one of ours, and writes the greeting.
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

// admitsPeer says whether the peer is this user or root.
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

// take admits one package or refuses it, in the order of checks that the protocol gives; false:
// nothing more is to be read.
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
		s.cfg.Row.Begin(k.record) // nobody can prove that it has not
		s.Kill()
		k.settle()
		return false
	case p.Alone && !k.cancel && k.async:
		// The client goes on once it has its answer, and so must this goroutine.
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

// illegal answers a body that is no package; an id that could be read counts as read.
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

// open takes a place among the row's connections, at the first frame.
func (c *conn) open() {
	if !c.opened {
		c.opened = true
		c.place = c.s.cfg.Row.ConnOpen()
	}
}

// readEnded says what the peer should know of the end of reading.
func (c *conn) readEnded(err error) {
	status, text := readFault(err, c.s.cfg.FrameTimeout)
	draining := c.s.isDraining()
	// A drain cuts a frame that was on its way: no fault of the peer's.
	if status == protocol.StatusPackageTooLarge || status != protocol.StatusOK && !draining {
		c.refuse(0, status, text)
		c.shut()
	}
	if draining {
		c.notice()
	}
}

// readFault returns the status that a reader's error stands for; 0: the stream ended between
// two frames, or is lost.
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

// shut makes the peer's writes fail and takes what it has written already: the peer then is not
// stuck in a write and reads its answer, and closing does not reset the connection.
func (c *conn) shut() {
	discard(c.nc, c.s.cfg.FrameTimeout)
}

func discard(nc *net.UnixConn, within time.Duration) {
	if sys.CloseRead(nc) != nil || nc.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	// However it ends, the connection is closed next.
	_, _ = io.Copy(io.Discard, nc)
}

// refuse answers a package that takes no slot.
func (c *conn) refuse(id uint64, status protocol.Status, text string) {
	c.out.send(c.s.failureFrame(id, status, text, 0), c.owed.Load() > 1)
}

// notice tells the peer which package was the last that was read.
func (c *conn) notice() {
	b := c.s.buffers.get(0)
	b.b = protocol.AppendNotice(b.b, c.last.Load())
	c.out.send(b, false)
}

// owe adds an answer that is to be sent; false: the connection has ended already.
func (c *conn) owe() bool {
	for {
		n := c.owed.Load()
		if n == 0 {
			return false
		}
		if c.owed.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// pay takes back one that was owed; with the last one the connection ends.
func (c *conn) pay() {
	if c.owed.Add(-1) > 0 {
		return
	}
	if c.place >= 0 {
		c.s.cfg.Row.ConnClose(c.place)
	}
	// Everything is sent, or the connection is lost.
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

// readUntil ends all reading at t.
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
	// It fails on a closed connection only, and then the next read says so.
	_ = c.nc.SetReadDeadline(until)
}

// drain ends the reading of new packages. Where closing the reading side is no barrier the peer
// is told first and may go on until it half-closes or the grace is over.
func (c *conn) drain() {
	if c.s.barrier {
		if sys.CloseRead(c.nc) != nil { // it has ended, or a task has closed its descriptor: nobody else wakes the reader
			c.readUntil(time.Unix(1, 0))
		}
		return
	}
	c.readUntil(time.Now().Add(c.s.cfg.DrainGrace))
	if !c.owe() {
		return
	}
	c.mu.Lock()
	greeted := c.greeted
	c.mu.Unlock()
	if greeted {
		c.notice()
	}
	c.pay()
}
