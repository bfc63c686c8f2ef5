package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/raw"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A Call is one package to deliver.
type Call struct {
	Type protocol.Type // Async or Sync
	Task string
	// Payload appends the arguments as one msgpack value. It may put large memory into lent instead
	// of copying it, unless lent is nil. A nil Payload means no arguments.
	Payload    func(dst []byte, lent *codec.Lent) ([]byte, error)
	Meta       map[string]string
	Soft, Hard time.Duration // time limits of this call; 0: none
	Deadline   int64         // absolute, on the clock of sys.Now; <= 0: none
	Wait       time.Duration // how long to wait for a slot; <= 0: not at all
	Cancel     bool          // the task ends when its caller no longer waits
}

// A Reply is the answer to a call that succeeded. Data is raw msgpack that the caller owns; a nil
// Data means nil.
type Reply struct {
	Data   []byte
	TaskID uint64
	Index  int
}

// maxUnreachable is how many workers a call may find unreachable before it fails.
const maxUnreachable = 16

// Do delivers call once and waits for the result (Sync) or the acceptance (Async). The end of ctx
// ends the call, as its deadline does. Do never sends a package again that may have been written,
// with one exception: a call with a Wait tries another slot when a worker itself answers -2 (busy).
func (c *Client) Do(ctx context.Context, call *Call) (Reply, *Failure) {
	if !c.calls.enter() {
		return Reply{}, closed()
	}
	defer c.calls.leave()
	b := c.budget(ctx, call)
	fr := c.frames.get()
	defer c.frames.put(fr)
	var f *Failure
	if fr.bytes, f = c.encode(fr.bytes, &fr.lent, &b, call); f != nil {
		return Reply{}, f
	}
	return c.deliver(&b, call, fr)
}

// encode appends the frame of call to dst. The id, the type and the bytes in lent are still
// missing. If it fails, it returns dst unchanged.
func (c *Client) encode(dst []byte, lent *codec.Lent, b *budget, call *Call) ([]byte, *Failure) {
	p := protocol.Package{
		Type: call.Type, Expire: b.expire(), Task: []byte(call.Task),
		Meta: call.Meta, Soft: call.Soft, Hard: call.Hard,
	}
	if call.Cancel {
		p.Meta = make(map[string]string, len(call.Meta)+1)
		maps.Copy(p.Meta, call.Meta)
		p.Meta[protocol.MetaCancel] = "1"
	}
	bytes := protocol.AppendHead(protocol.BeginFrame(dst), &p)
	if call.Payload == nil {
		bytes = append(bytes, raw.CodeNil)
	} else {
		encoded, err := call.Payload(bytes, lent)
		if err != nil {
			return dst, &Failure{
				Status: protocol.StatusTaskError, Delivery: NotRun, Index: -1, Err: err,
				Message: fmt.Sprintf("the arguments of task %q cannot be encoded: %v", call.Task, err),
			}
		}
		bytes = encoded
	}
	bytes = protocol.AppendTail(bytes, &p)
	if err := protocol.EndFrameOf(bytes[len(dst):], len(bytes)-len(dst)+lent.Size(), c.cfg.MaxPackageSize); err != nil {
		return bytes[:len(dst)], tooLarge(err)
	}
	return bytes, nil
}

// An outcome says how a call continues after one attempt.
type outcome int

const (
	final     outcome = iota // the call has its answer or its failure
	elsewhere                // nothing was written: the call may go to another worker
	busy                     // the worker answered -2: the call may wait for another slot
)

// deliver chooses workers until one takes the package.
func (c *Client) deliver(b *budget, call *Call, fr *frame) (Reply, *Failure) {
	// The picks of unreachable workers are kept until the call ends: the chooser prefers the
	// others.
	var unreachable []sharedstate.Row
	var unreached *Failure
	for {
		row, f := c.choose(b)
		if f != nil {
			c.returnPicks(unreachable)
			return Reply{}, preferUnreached(f, unreached)
		}
		reply, f, o := c.send(b, call, fr, row)
		switch {
		case o == elsewhere && len(unreachable) < maxUnreachable:
			unreachable = append(unreachable, row)
			if f.Err != nil {
				unreached = f
			}
		case o == busy && b.left(b.waitUntil) > 0 && !c.calls.closed():
			c.chooser.Done(row)
		default:
			c.chooser.Done(row)
			c.returnPicks(unreachable)
			return reply, f
		}
	}
}

// preferUnreached returns the failure of the worker that the call could not reach, if f only says
// that no other worker is free.
func preferUnreached(f, unreached *Failure) *Failure {
	if unreached != nil && f.Status == protocol.StatusBusy && !errors.Is(f, ErrClosed) {
		return unreached
	}
	return f
}

func (c *Client) returnPicks(rows []sharedstate.Row) {
	for _, row := range rows {
		c.chooser.Done(row)
	}
}

// choose picks a worker. It waits for one as long as the call allows.
func (c *Client) choose(b *budget) (sharedstate.Row, *Failure) {
	if err := b.ended(); err != nil {
		return sharedstate.Row{}, outOfTime(err, sentNothing, nil)
	}
	if !c.table.Closed() && !c.calls.closed() {
		if row, ok := c.pick(b); ok {
			return row, nil
		}
	}
	if b.contextEnded() {
		return sharedstate.Row{}, outOfTime(b.lateErr(), sentNothing, nil)
	}
	if c.table.Closed() || c.calls.closed() {
		return sharedstate.Row{}, closed()
	}
	return sharedstate.Row{}, c.noSlot(b)
}

func (c *Client) pick(b *budget) (sharedstate.Row, bool) {
	if b.waitUntil == 0 {
		return c.chooser.Pick()
	}
	d := b.left(b.waitUntil)
	if d <= 0 {
		return sharedstate.Row{}, false
	}
	row, ok := c.chooser.PickWait(b.ctx, d)
	if ok && b.ctx.Err() != nil { // the end of ctx may be what freed the slot
		c.chooser.Done(row)
		return sharedstate.Row{}, false
	}
	return row, ok
}

// noSlot returns the failure of a call for which no worker could be chosen.
func (c *Client) noSlot(b *budget) *Failure {
	accepting := 0
	for i := range c.table.Workers() {
		if row, ok := c.table.Current(i); ok && row.Accepting() {
			accepting++
		}
	}
	f := &Failure{Status: protocol.StatusBusy, Delivery: NotRun, Index: -1}
	f.Message = fmt.Sprintf("task process busy: of %d workers %d are full and %d do not accept",
		c.table.Workers(), accepting, c.table.Workers()-accepting)
	if b.waitUntil > 0 {
		f.Message += ", and no slot became free in time"
		if sys.Now() >= b.deadline {
			f.Err = b.lateErr()
		}
	}
	return f
}

// exclusiveCalls is the number of calls in flight to one worker that have a connection each, which
// has the lowest latency. Further calls share one connection, which costs the least CPU time.
const exclusiveCalls = 2

// largeFrame is the size in bytes from which a frame has an exclusive connection, so that it delays
// no other call. It must not exceed codec.Large, because a shared connection cannot write lent
// memory.
const largeFrame = codec.Large

// send tries once to deliver the package to the worker of row.
func (c *Client) send(b *budget, call *Call, fr *frame, row sharedstate.Row) (Reply, *Failure, outcome) {
	if call.Cancel || fr.size() >= largeFrame || c.chooser.InFlight(row) <= exclusiveCalls {
		return c.sendExclusive(b, call, fr, row)
	}
	for {
		s, f, o := c.sharedTo(b, row)
		switch {
		case f != nil:
			return Reply{}, f, o
		case len(fr.bytes) > s.MaxPackageSize:
			return c.sendExclusive(b, call, fr, row)
		}
		if w := c.waiters.get(); s.submit(w.fill(b, call, fr.bytes)) {
			return c.await(b, w, s)
		}
		c.conns[s.Index].dropShared(s)
	}
}

// fill prepares w for submit.
func (w *waiter) fill(b *budget, call *Call, frame []byte) *waiter {
	protocol.SetType(frame, call.Type)
	w.frame, w.deadline = frame, b.deadline
	return w
}

// await waits for the answer of a call on a shared connection.
func (c *Client) await(b *budget, w *waiter, s *shared) (Reply, *Failure, outcome) {
	if ended := b.ctx.Done(); ended == nil { // cheaper than a select
		<-w.done
	} else {
		select {
		case <-w.done:
		case <-ended:
			if !s.abandon(w) {
				<-w.done
			}
		}
	}
	reply, f, o := c.resultOf(b, w)
	c.waiters.put(w)
	return reply, f, o
}

// resultOf returns the result of the call that w waited for.
func (c *Client) resultOf(b *budget, w *waiter) (Reply, *Failure, outcome) {
	if w.lost != nil {
		return c.unanswered(b, w.link, w.lost.evidence, w.lost.err)
	}
	return answered(w.link, &w.response)
}
