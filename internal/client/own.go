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

// sendBuffer is SO_SNDBUF, in bytes, of a connection that carries large frames.
const sendBuffer = 1 << 20

// An own connection carries one call at a time: its caller writes and reads
// itself, and the worker may run the task where it reads.
type own struct {
	*link
	deadline  atomic.Int64 // of the call under way; 0: none
	interrupt func()       // ends its blocked read or write
	enlarged  bool         // its send buffer was made larger
}

func (o *own) sweep(now int64) int64 {
	switch d := o.deadline.Load(); {
	case d == 0:
		return never
	case d > now:
		return d
	case o.deadline.CompareAndSwap(d, 0): // else the call has just ended, and the next one is not meant
		o.interrupt()
	}
	return never
}

func (o *own) cut() { _ = o.conn.Close() }

// forget closes a connection that nobody uses.
func (c *Client) forget(o *own) {
	c.sweeper.remove(o)
	_ = o.conn.Close()
}

// openOwn opens a connection to the worker of row.
func (c *Client) openOwn(b *budget, row sharedstate.Row) (*own, *Failure, verdict) {
	l, f, v := c.dial(b, row)
	if f != nil {
		return nil, f, v
	}
	o := &own{link: l}
	o.interrupt = func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) }
	if !c.sweeper.add(o) {
		_ = l.conn.Close()
		return nil, outOfTime(ErrClosed, nothing, l), settled
	}
	return o, nil, settled
}

// sendAlone makes one attempt on a connection of the call's own.
func (c *Client) sendAlone(b *budget, call *Call, fr *frame, row sharedstate.Row) (Reply, *Failure, verdict) {
	p := &c.peers[row.Index()]
	for o := p.take(c, row.Generation()); o != nil; o = p.take(c, row.Generation()) {
		reply, f, v := c.exchange(b, call, fr, o)
		if v != elsewhere {
			return reply, f, v
		}
		p.drop(c, o.Generation) // the worker has closed it, and likely the others, while they were idle
	}
	o, f, v := c.openOwn(b, row)
	if f != nil {
		return Reply{}, f, v
	}
	return c.exchange(b, call, fr, o)
}

// exchange writes the package and reads its answer. It keeps the connection or closes it.
func (c *Client) exchange(b *budget, call *Call, fr *frame, o *own) (Reply, *Failure, verdict) {
	if err := protocol.EndFrameOf(fr.bytes, fr.size(), min(o.MaxPackageSize, c.cfg.MaxPackageSize)); err != nil {
		c.release(o, true)
		return Reply{}, tooLarge(err), settled
	}
	t := call.Type
	if t == protocol.Sync && !call.Cancel { // the worker goes on reading where it must see the caller go
		t |= protocol.Alone
	}
	id := o.nextID()
	protocol.SetType(fr.bytes, t)
	protocol.SetID(fr.bytes, id)

	if fr.size() >= largeFrame && !o.enlarged {
		o.enlarged = true
		// A smaller buffer is slower and nothing worse.
		_ = o.conn.SetWriteBuffer(sendBuffer)
	}
	stop := o.begin(c, b)
	n, err := fr.write(o.conn)
	sent := extentOf(n, fr.size())
	var r protocol.Response
	var owned bool
	if err == nil {
		r, owned, err = o.answer(id)
	} else if sent == part && !errors.Is(err, os.ErrDeadlineExceeded) {
		r, owned, err = o.refusal(id, err)
	}
	usable := o.end(b, stop)
	if err != nil {
		c.forget(o)
		return c.unanswered(b, o.link, evidence{
			sent: sent, end: endOf(err), id: id, at: sys.Now(), readKnown: o.noticed, lastRead: o.lastRead,
		}, err)
	}
	if !owned {
		r.Data = bytes.Clone(r.Data)
	}
	reply, f, v := answered(o.link, &r)
	c.release(o, usable && r.ID == id && !o.noticed && !o.usedUp(1))
	return reply, f, v
}

// release keeps a connection after a call, if it can be used again.
func (c *Client) release(o *own, usable bool) {
	if !usable || !c.peers[o.Index].put(o) {
		c.forget(o)
	}
}

func extentOf(n, size int) extent {
	switch n {
	case 0:
		return nothing
	case size:
		return whole
	}
	return part
}

// begin lets the deadline and the context's end interrupt the connection.
func (o *own) begin(c *Client, b *budget) (stop func() bool) {
	if b.ctx.Done() != nil {
		stop = context.AfterFunc(b.ctx, o.interrupt)
	}
	if b.deadline != never {
		o.deadline.Store(b.deadline)
		c.sweeper.arm(b.deadline)
	}
	return stop
}

// end says whether neither has: a connection that was, or may yet be,
// interrupted is of no use to the next call.
func (o *own) end(b *budget, stop func() bool) (clean bool) {
	clean = b.deadline == never || o.deadline.CompareAndSwap(b.deadline, 0)
	return (stop == nil || stop()) && clean
}

// answer reads until the response with the given id. A refusal without an id
// can only mean the one package that was sent.
func (o *own) answer(id uint64) (protocol.Response, bool, error) {
	for {
		r, owned, err := o.read()
		if err != nil || r.ID == id {
			return r, owned, err
		}
		if last, ok := protocol.ParseNotice(&r); ok {
			o.noticed, o.lastRead = true, last
		} else if r.ID == 0 {
			return r, owned, nil
		}
	}
}

// refusal reads what the worker said before it stopped taking the frame. Only a
// frame over its limit is an answer; anything else leaves the write's error as the cause.
func (o *own) refusal(id uint64, cause error) (protocol.Response, bool, error) {
	_ = o.conn.SetReadDeadline(time.Now().Add(endWait))
	r, owned, err := o.answer(id)
	if err != nil || r.Status != protocol.StatusPackageTooLarge {
		return protocol.Response{}, false, cause
	}
	return r, owned, nil
}
