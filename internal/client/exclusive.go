package client

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// sendBuffer is the SO_SNDBUF of a connection that carries large frames, in bytes.
const sendBuffer = 1 << 20

// An exclusive connection carries one call at a time. The caller writes and reads it itself, and
// the worker may run the task in the goroutine that reads.
type exclusive struct {
	*link
	deadline  atomic.Int64 // of the call in flight; 0: none
	interrupt func()       // ends a blocked read or write
	enlarged  bool         // its send buffer is sendBuffer
}

func (x *exclusive) expire(now int64) int64 {
	switch d := x.deadline.Load(); {
	case d == 0:
		return never
	case d > now:
		return d
	case x.deadline.CompareAndSwap(d, 0): // else that call has just ended
		x.interrupt()
	}
	return never
}

func (x *exclusive) cut() { _ = x.conn.Close() }

// discardExclusive closes an unused connection.
func (c *Client) discardExclusive(x *exclusive) {
	c.deadlines.remove(x)
	_ = x.conn.Close()
}

// openExclusive opens a connection to the worker of row.
func (c *Client) openExclusive(b *budget, row sharedstate.Row) (*exclusive, *Failure, outcome) {
	l, f, o := c.dial(b, row)
	if f != nil {
		return nil, f, o
	}
	x := &exclusive{link: l}
	x.interrupt = func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) }
	if !c.deadlines.add(x) {
		_ = l.conn.Close()
		return nil, outOfTime(ErrClosed, sentNothing, l), final
	}
	return x, nil, final
}

// sendExclusive makes one attempt on an exclusive connection: an idle one, or else a new one.
func (c *Client) sendExclusive(b *budget, call *Call, fr *frame, row sharedstate.Row) (Reply, *Failure, outcome) {
	w := &c.conns[row.Index()]
	for x := w.takeIdle(c, row.Generation()); x != nil; x = w.takeIdle(c, row.Generation()) {
		reply, f, o := c.exchange(b, call, fr, x)
		if o != elsewhere {
			return reply, f, o
		}
		w.dropIdle(c, x.Generation) // the worker has closed it, and probably the other idle ones, too
	}
	x, f, o := c.openExclusive(b, row)
	if f != nil {
		return Reply{}, f, o
	}
	return c.exchange(b, call, fr, x)
}

// exchange writes the package and reads the answer. It keeps the connection for later calls or
// closes it.
func (c *Client) exchange(b *budget, call *Call, fr *frame, x *exclusive) (Reply, *Failure, outcome) {
	if err := protocol.EndFrameOf(fr.bytes, fr.size(), min(x.MaxPackageSize, c.cfg.MaxPackageSize)); err != nil {
		c.release(x, true)
		return Reply{}, tooLarge(err), final
	}
	t := call.Type
	if t == protocol.Sync && !call.Cancel { // else the worker must keep reading, to notice that the caller has gone
		t |= protocol.Alone
	}
	id := x.nextID()
	protocol.SetType(fr.bytes, t)
	protocol.SetID(fr.bytes, id)

	if fr.size() >= largeFrame && !x.enlarged {
		x.enlarged = true
		// If this fails, the connection is merely slower.
		_ = x.conn.SetWriteBuffer(sendBuffer)
	}
	stop := x.begin(c, b)
	n, err := fr.write(x.conn)
	sent := extentOf(n, fr.size())
	var r protocol.Response
	var owned bool
	if err == nil {
		r, owned, err = x.answer(id)
	} else if sent == sentPart && !errors.Is(err, os.ErrDeadlineExceeded) {
		r, owned, err = x.refusal(id, err)
	}
	usable := x.end(b, stop)
	if err != nil {
		c.discardExclusive(x)
		return c.unanswered(b, x.link, evidence{
			sent: sent, end: endOf(err), id: id, at: sys.Now(), readKnown: x.noticed, lastRead: x.lastRead,
		}, err)
	}
	if !owned {
		r.Data = bytes.Clone(r.Data)
	}
	reply, f, o := answered(x.link, &r)
	c.release(x, usable && r.ID == id && !x.noticed && !x.usedUp(1))
	return reply, f, o
}

// release keeps the connection for later calls if it is usable, or closes it.
func (c *Client) release(x *exclusive, usable bool) {
	if !usable || !c.conns[x.Index].keepIdle(x) {
		c.discardExclusive(x)
	}
}

func extentOf(n, size int) extent {
	switch n {
	case 0:
		return sentNothing
	case size:
		return sentWhole
	}
	return sentPart
}

// begin makes the deadline and the end of the context interrupt the connection.
func (x *exclusive) begin(c *Client, b *budget) (stop func() bool) {
	if b.ctx.Done() != nil {
		stop = context.AfterFunc(b.ctx, x.interrupt)
	}
	if b.deadline != never {
		x.deadline.Store(b.deadline)
		c.deadlines.arm(b.deadline)
	}
	return stop
}

// end undoes begin. clean is false if the connection was, or may still be, interrupted: the next
// call cannot use it.
func (x *exclusive) end(b *budget, stop func() bool) (clean bool) {
	clean = b.deadline == never || x.deadline.CompareAndSwap(b.deadline, 0)
	return (stop == nil || stop()) && clean
}

// answer reads until the response with the given id. A refusal without an id can only refer to the
// one package that was sent.
func (x *exclusive) answer(id uint64) (protocol.Response, bool, error) {
	for {
		r, owned, err := x.read()
		if err != nil || r.ID == id {
			return r, owned, err
		}
		if last, ok := protocol.ParseNotice(&r); ok {
			x.noticed, x.lastRead = true, last
		} else if r.ID == 0 {
			return r, owned, nil
		}
	}
}

// refusal reads why the worker stopped reading the frame. It returns the answer that the frame is
// too large, or else cause, the error of the write.
func (x *exclusive) refusal(id uint64, cause error) (protocol.Response, bool, error) {
	_ = x.conn.SetReadDeadline(time.Now().Add(endWait))
	r, owned, err := x.answer(id)
	if err != nil || r.Status != protocol.StatusPackageTooLarge {
		return protocol.Response{}, false, cause
	}
	return r, owned, nil
}
