package client

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/taskd-go/task/sharedstate"
)

// Many delivers each call once, as Do does, and returns when the last has
// ended: replies[i] or failures[i], which is nil then, belongs to calls[i]. They
// are spread over the workers by free slots and many go out in one write. What
// exceeds the free slots is busy, or waits for one when its Wait says so.
func (c *Client) Many(ctx context.Context, calls []Call) (replies []Reply, failures []*Failure) {
	m := &batch{
		c: c, ctx: ctx, calls: calls,
		replies: make([]Reply, len(calls)), failures: make([]*Failure, len(calls)),
		items: make([]item, len(calls)), todo: make([]int, 0, len(calls)), wake: make(chan struct{}, 1),
	}
	if !c.calls.enter() {
		for i := range calls {
			m.failures[i] = closed()
		}
		return m.replies, m.failures
	}
	defer c.calls.leave()
	m.encode()
	m.run()
	for _, fr := range m.frames {
		c.frames.put(fr)
	}
	for _, row := range m.missed {
		c.chooser.Done(row)
	}
	return m.replies, m.failures
}

// A batch is the calls of one Many. Its fields are its caller's alone, but for those under mu.
type batch struct {
	c        *Client
	ctx      context.Context // of Many, which it does not outlive
	calls    []Call
	replies  []Reply    // of a call that is with a worker: whoever ends its attempt writes them, before end
	failures []*Failure // so too; of a call in todo: what its last attempt met
	items    []item
	frames   []*frame // memory of the items' frames
	todo     []int    // calls that have no worker yet

	mu     sync.Mutex
	flying int               // calls that are with a worker
	done   []int             // calls that are no more, were not looked at, and have no answer that settles them
	missed []sharedstate.Row // as in deliver
	wake   chan struct{}
	alone  sync.WaitGroup
}

// An item is what one call needs on its way.
type item struct {
	budget  *budget // of all calls with the same limits
	waiter  waiter
	shared  *shared // where it waits; nil: on a connection of its own
	verdict verdict // of its last attempt
	detours int
}

// encode makes the frames of all calls, one behind the other. Nothing is lent: many calls with large memory each are not what it is for.
func (m *batch) encode() {
	var b *budget
	var fr *frame
	for i := range m.calls {
		call, it := &m.calls[i], &m.items[i]
		if i == 0 || call.Deadline != m.calls[i-1].Deadline || call.Wait != m.calls[i-1].Wait {
			b = new(m.c.budget(m.ctx, call))
		}
		if i == 0 || len(fr.bytes) >= keepBelow {
			fr = m.c.frames.get()
			m.frames = append(m.frames, fr)
		}
		begin := len(fr.bytes)
		if fr.bytes, m.failures[i] = m.c.encode(fr.bytes, nil, b, call); m.failures[i] != nil {
			continue
		}
		it.budget = b
		it.waiter.many, it.waiter.call, it.waiter.frame = m, i, fr.bytes[begin:]
		m.todo = append(m.todo, i)
	}
}

func (m *batch) run() {
	ended := m.ctx.Done()
	for {
		m.collect()
		m.place()
		m.mu.Lock()
		over := m.flying == 0 && len(m.done) == 0
		m.mu.Unlock()
		switch {
		case len(m.todo) > 0:
			m.placeNext()
		case !over:
			select {
			case <-m.wake:
			case <-ended:
				ended = nil
				m.abandon()
			}
		default:
			m.alone.Wait()
			return
		}
	}
}

// place gives the calls that have none a worker each, as long as slots are free,
// and sends them. Those that may wait for a slot stay.
func (m *batch) place() {
	todo := m.inTime()
	if !m.c.calls.closed() {
		for _, s := range m.c.chooser.PickMany(len(todo)) {
			m.dispatch(s.Row, todo[:s.Calls])
			todo = todo[s.Calls:]
		}
	}
	m.todo = m.todo[:0]
	for _, i := range todo {
		if m.items[i].budget.waitUntil > 0 {
			m.todo = append(m.todo, i)
		} else {
			m.placeOne(i)
		}
	}
}

// inTime returns the calls that have no worker, without those that have no time left: these end here.
func (m *batch) inTime() []int {
	var b *budget
	var ended error
	todo := m.todo[:0]
	for _, i := range m.todo {
		if b != m.items[i].budget {
			b = m.items[i].budget
			ended = b.ended()
		}
		if ended == nil {
			todo = append(todo, i)
		} else {
			m.failures[i] = outOfTime(ended, nothing, nil)
		}
	}
	return todo
}

// placeNext waits for a slot for the first call that has none.
func (m *batch) placeNext() {
	for placed := false; !placed && len(m.todo) > 0; {
		i := m.todo[0]
		m.todo = m.todo[1:]
		placed = m.placeOne(i)
	}
}

// placeOne waits for a slot as long as call i may, and sends it; false: there was none.
func (m *batch) placeOne(i int) bool {
	row, f := m.c.choose(m.items[i].budget)
	if f != nil {
		m.failures[i] = tellMore(f, m.failures[i])
		return false
	}
	m.dispatch(row, []int{i})
	return true
}

// dispatch sends the calls to the worker of row, on which each has its pick.
func (m *batch) dispatch(row sharedstate.Row, calls []int) {
	together := make([]*waiter, 0, len(calls))
	for _, i := range calls {
		it := &m.items[i]
		it.waiter.row = row
		if m.calls[i].Cancel || len(it.waiter.frame) >= largeFrame {
			m.sendAlone(i)
		} else {
			together = append(together, it.waiter.fill(it.budget, &m.calls[i], it.waiter.frame))
		}
	}
	m.sendTogether(row, together)
}

// sendAlone sends call i on a connection of its own.
func (m *batch) sendAlone(i int) {
	it := &m.items[i]
	it.shared = nil
	m.launch(1)
	m.alone.Go(func() {
		m.replies[i], m.failures[i], it.verdict = m.c.sendAlone(it.budget, &m.calls[i], &frame{bytes: it.waiter.frame}, it.waiter.row)
		m.end(i, it.verdict == elsewhere)
	})
}

// sendTogether sends ws on the shared connection.
func (m *batch) sendTogether(row sharedstate.Row, ws []*waiter) {
	m.launch(len(ws))
	for len(ws) > 0 {
		// The one whose time is up first bounds the wait for a connection.
		first := slices.MinFunc(ws, func(a, b *waiter) int { return cmp.Compare(a.deadline, b.deadline) })
		s, f, v := m.c.sharedTo(m.items[first.call].budget, row)
		if f != nil {
			ws = m.unconnected(ws, first, f, v)
			continue
		}
		for _, w := range ws {
			m.items[w.call].shared = s
		}
		if s.submit(ws...) {
			return
		}
		m.c.peers[s.Index].leave(s)
	}
}

// unconnected ends the attempt of those for which there is no connection: all, or when only the time of some was up, these.
func (m *batch) unconnected(ws []*waiter, first *waiter, f *Failure, v verdict) (others []*waiter) {
	for _, w := range ws {
		it := &m.items[w.call]
		if v == settled && w != first && it.budget.ended() == nil {
			others = append(others, w)
			continue
		}
		m.failures[w.call], it.verdict, it.shared = f, v, nil
		m.end(w.call, v == elsewhere)
	}
	return others
}

func (m *batch) launch(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flying += n
}

// answered is called by a shared connection with answers to calls of the batch.
func (m *batch) answered(answers []answer) {
	// Not later: others of this batch may wait for the slots.
	for rest := answers; len(rest) > 0; {
		row, n := rest[0].waiter.row, 1
		for n < len(rest) && rest[n].waiter.row == row {
			n++
		}
		m.c.chooser.DoneMany(row, n)
		rest = rest[n:]
	}
	m.mu.Lock()
	for i := range answers {
		a := &answers[i]
		if w := a.waiter; a.OK {
			m.replies[w.call], m.failures[w.call], _ = answered(w.link, &a.Response)
		} else {
			w.response = a.Response
			m.done = append(m.done, w.call)
		}
	}
	m.landedLocked(len(answers))
}

// end notes that a worker no longer has call i, which has no answer, or had a connection of its
// own. missed: the worker was out of reach, so that its pick is kept.
func (m *batch) end(i int, missed bool) {
	row := m.items[i].waiter.row
	if !missed {
		m.c.chooser.Done(row)
	}
	m.mu.Lock()
	if missed {
		m.missed = append(m.missed, row)
	}
	m.done = append(m.done, i)
	m.landedLocked(1)
}

// landedLocked counts n calls that have ended. It wakes the caller for the last one, and for one
// that may have to be placed again, and unlocks.
func (m *batch) landedLocked(n int) {
	m.flying -= n
	wake := m.flying == 0 || len(m.done) > 0
	m.mu.Unlock()
	if wake {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// collect looks at the calls that have ended since the last time: each has its outcome, or is to be placed again.
func (m *batch) collect() {
	m.mu.Lock()
	done := m.done
	m.done = nil
	m.mu.Unlock()
	for _, i := range done {
		it := &m.items[i]
		if it.shared != nil {
			m.replies[i], m.failures[i], it.verdict = m.c.outcome(it.budget, &it.waiter)
		}
		switch {
		case it.verdict == elsewhere && it.detours < maxDetours:
			it.detours++
			m.todo = append(m.todo, i)
		case it.verdict == busy && it.budget.left(it.budget.waitUntil) > 0 && !m.c.calls.closed():
			m.todo = append(m.todo, i)
		}
	}
}

// abandon ends the waiting on shared connections; calls on their own see the context's end themselves.
func (m *batch) abandon() {
	for i := range m.items {
		it := &m.items[i]
		if it.shared != nil && it.shared.abandon(&it.waiter) {
			it.waiter.finish()
		}
	}
}
