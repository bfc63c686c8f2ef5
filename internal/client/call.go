package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A Call is one package to deliver.
type Call struct {
	Type protocol.Type // Async or Sync
	Task string
	// Payload appends the arguments as one msgpack value, but for what it puts into lent, which may be nil. A nil Payload: the task has none.
	Payload    func(dst []byte, lent *codec.Lent) ([]byte, error)
	Meta       map[string]string
	Soft, Hard time.Duration // time limits of this call; 0: none
	Deadline   int64         // absolute, sys.Now's clock; <= 0: none
	Wait       time.Duration // > 0: wait that long for a slot
	Cancel     bool          // the task ends with its caller
}

// A Reply is a call's success. Data is raw msgpack in memory of its own; nil: nil.
type Reply struct {
	Data   []byte
	TaskID uint64
	Index  int
}

// maxDetours is how many workers may turn out to be unreachable before a call gives up.
const maxDetours = 16

// Do delivers once and waits for the result (Sync) or the acceptance (Async).
// The end of ctx ends the call as the deadline does. A call whose package may have
// been written is never sent again, but for one that asked to wait for a slot and got a worker's own -2.
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

// encode appends the whole frame, but for its id and type and what it puts into lent, or nothing.
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
		bytes = append(bytes, msgpackNil)
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

const msgpackNil = 0xc0

// A verdict says how a call goes on after one attempt.
type verdict int

const (
	settled   verdict = iota // it has its answer or its failure
	elsewhere                // nothing was written: another worker may have it
	busy                     // the worker's own -2: it may wait for another slot
)

// deliver chooses workers until one has taken the package.
func (c *Client) deliver(b *budget, call *Call, fr *frame) (Reply, *Failure) {
	var missed []sharedstate.Row // picks of workers that were out of reach: they are kept, so that others come first
	var unreached *Failure
	for {
		row, f := c.choose(b)
		if f != nil {
			return c.give(Reply{}, tellMore(f, unreached), missed)
		}
		reply, f, v := c.send(b, call, fr, row)
		switch {
		case v == elsewhere && len(missed) < maxDetours:
			missed = append(missed, row)
			if f.Err != nil {
				unreached = f
			}
		case v == busy && b.left(b.waitUntil) > 0 && !c.calls.closed():
			c.chooser.Done(row)
		default:
			c.chooser.Done(row)
			return c.give(reply, f, missed)
		}
	}
}

// tellMore prefers, to the failure that no other worker is free, the one of the worker that the call could not reach.
func tellMore(f, unreached *Failure) *Failure {
	if unreached != nil && f.Status == protocol.StatusBusy && !errors.Is(f, ErrClosed) {
		return unreached
	}
	return f
}

// give hands the outcome out once the picks of unreachable workers are given back.
func (c *Client) give(r Reply, f *Failure, missed []sharedstate.Row) (Reply, *Failure) {
	for _, row := range missed {
		c.chooser.Done(row)
	}
	return r, f
}

// choose picks a worker, or waits for one as long as the call asks for.
func (c *Client) choose(b *budget) (sharedstate.Row, *Failure) {
	if err := b.ended(); err != nil {
		return sharedstate.Row{}, outOfTime(err, nothing, nil)
	}
	if !c.table.Closed() && !c.calls.closed() {
		if row, ok := c.pick(b); ok {
			return row, nil
		}
	}
	if b.contextEnded() {
		return sharedstate.Row{}, outOfTime(b.late(), nothing, nil)
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
	if ok && b.ctx.Err() != nil { // the slot came free because this context ended, too
		c.chooser.Done(row)
		return sharedstate.Row{}, false
	}
	return row, ok
}

// noSlot says why no worker could be chosen.
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
			f.Err = b.late()
		}
	}
	return f
}

// ownCalls is up to how many calls in flight to a worker each has a connection
// of its own, which costs the least time; more share one, which costs the least work.
const ownCalls = 2

// largeFrame is from how many bytes on a frame has a connection of its own, so that it holds up no other. It is no
// more than codec.Large: a shared connection does not write what is lent.
const largeFrame = codec.Large

// send makes one attempt at the worker of row.
func (c *Client) send(b *budget, call *Call, fr *frame, row sharedstate.Row) (Reply, *Failure, verdict) {
	if call.Cancel || fr.size() >= largeFrame || c.chooser.InFlight(row) <= ownCalls {
		return c.sendAlone(b, call, fr, row)
	}
	for {
		s, f, v := c.sharedTo(b, row)
		switch {
		case f != nil:
			return Reply{}, f, v
		case len(fr.bytes) > s.MaxPackageSize:
			return c.sendAlone(b, call, fr, row)
		}
		if w := c.waiters.get(); s.submit(w.fill(b, call, fr.bytes)) {
			return c.await(b, w, s)
		}
		c.peers[s.Index].leave(s)
	}
}

// fill readies w for a submit.
func (w *waiter) fill(b *budget, call *Call, frame []byte) *waiter {
	protocol.SetType(frame, call.Type)
	w.frame, w.deadline = frame, b.deadline
	return w
}

// await waits for the answer of a call on a shared connection.
func (c *Client) await(b *budget, w *waiter, s *shared) (Reply, *Failure, verdict) {
	if ended := b.ctx.Done(); ended == nil { // a select costs more
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
	reply, f, v := c.outcome(b, w)
	c.waiters.put(w)
	return reply, f, v
}

// outcome turns what came of w into the call's.
func (c *Client) outcome(b *budget, w *waiter) (Reply, *Failure, verdict) {
	if w.lost != nil {
		return c.unanswered(b, w.link, w.lost.evidence, w.lost.err)
	}
	return answered(w.link, &w.response)
}
