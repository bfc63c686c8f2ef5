package client

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/taskd-go/task/sharedstate"
)

// Many delivers each call once, as Do does, and returns when the last one has ended. If failures[i]
// is nil, calls[i] succeeded with replies[i]. Many spreads the calls over the workers by their free
// slots, and writes many of them together. Calls in excess of the free slots are busy, or wait as
// their Wait says.
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
	for _, row := range m.unreachable {
		c.chooser.Done(row)
	}
	return m.replies, m.failures
}

// A batch is the state of one Many. Only the goroutine of Many uses it, except the fields that mu
// protects.
type batch struct {
	c     *Client
	ctx   context.Context // of Many; the batch does not outlive it
	calls []Call
	// While a call is with a worker, only the goroutine that ends the attempt writes its reply and
	// failure, before it calls end.
	replies  []Reply
	failures []*Failure // of a call in todo: of its last attempt
	items    []item
	frames   []*frame // the memory of the items' frames
	todo     []int    // calls that have no worker

	mu          sync.Mutex
	inFlight    int               // calls that are with a worker
	done        []int             // calls that left their worker without a final answer, to be collected
	unreachable []sharedstate.Row // as in deliver
	wake        chan struct{}
	exclusives  sync.WaitGroup
}

// An item is the state of one call.
type item struct {
	budget      *budget // shared by neighbours with the same limits
	waiter      waiter
	shared      *shared // where it waits; nil: on an exclusive connection
	outcome     outcome // of its last attempt
	unreachable int
}

// encode makes the frames of all calls, one after another. It lends no memory: batches are meant
// for small calls.
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
		it.waiter.batch, it.waiter.call, it.waiter.frame = m, i, fr.bytes[begin:]
		m.todo = append(m.todo, i)
	}
}

func (m *batch) run() {
	ended := m.ctx.Done()
	for {
		m.collect()
		m.place()
		m.mu.Lock()
		over := m.inFlight == 0 && len(m.done) == 0
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
			m.exclusives.Wait()
			return
		}
	}
}

// place sends the calls in todo to workers with free slots. Those without a slot stay in todo if
// they may wait, and fail otherwise.
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

// inTime returns the calls in todo that have time left. It fails the others.
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
			m.failures[i] = outOfTime(ended, sentNothing, nil)
		}
	}
	return todo
}

// placeNext waits for a slot for the first call in todo. If that call fails, it goes on to the next
// one.
func (m *batch) placeNext() {
	for placed := false; !placed && len(m.todo) > 0; {
		i := m.todo[0]
		m.todo = m.todo[1:]
		placed = m.placeOne(i)
	}
}

// placeOne waits for a slot as long as call i allows, and sends the call. It returns false if no
// slot became free.
func (m *batch) placeOne(i int) bool {
	row, f := m.c.choose(m.items[i].budget)
	if f != nil {
		m.failures[i] = preferUnreached(f, m.failures[i])
		return false
	}
	m.dispatch(row, []int{i})
	return true
}

// dispatch sends the calls to the worker of row, which was picked for each of them.
func (m *batch) dispatch(row sharedstate.Row, calls []int) {
	together := make([]*waiter, 0, len(calls))
	for _, i := range calls {
		it := &m.items[i]
		it.waiter.row = row
		if m.calls[i].Cancel || len(it.waiter.frame) >= largeFrame {
			m.sendExclusive(i)
		} else {
			together = append(together, it.waiter.fill(it.budget, &m.calls[i], it.waiter.frame))
		}
	}
	m.sendTogether(row, together)
}

// sendExclusive sends call i on an exclusive connection.
func (m *batch) sendExclusive(i int) {
	it := &m.items[i]
	it.shared = nil
	m.addInFlight(1)
	m.exclusives.Go(func() {
		fr := &frame{bytes: it.waiter.frame}
		m.replies[i], m.failures[i], it.outcome = m.c.sendExclusive(it.budget, &m.calls[i], fr, it.waiter.row)
		m.end(i, it.outcome == elsewhere)
	})
}

// sendTogether sends ws on the shared connection.
func (m *batch) sendTogether(row sharedstate.Row, ws []*waiter) {
	m.addInFlight(len(ws))
	for len(ws) > 0 {
		// The earliest deadline bounds the wait for a connection.
		first := slices.MinFunc(ws, func(a, b *waiter) int { return cmp.Compare(a.deadline, b.deadline) })
		s, f, o := m.c.sharedTo(m.items[first.call].budget, row)
		if f != nil {
			ws = m.unconnected(ws, first, f, o)
			continue
		}
		for _, w := range ws {
			m.items[w.call].shared = s
		}
		if s.submit(ws...) {
			return
		}
		m.c.conns[s.Index].dropShared(s)
	}
}

// unconnected ends the attempt of ws, for which no connection could be opened. If only some of them
// are out of time, it ends those and returns the others.
func (m *batch) unconnected(ws []*waiter, first *waiter, f *Failure, o outcome) (others []*waiter) {
	for _, w := range ws {
		it := &m.items[w.call]
		if o == final && w != first && it.budget.ended() == nil {
			others = append(others, w)
			continue
		}
		m.failures[w.call], it.outcome, it.shared = f, o, nil
		m.end(w.call, o == elsewhere)
	}
	return others
}

func (m *batch) addInFlight(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight += n
}

// answered takes answers from a shared connection.
func (m *batch) answered(answers []answer) {
	// The slots come first, because other calls of this batch may wait for them.
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
	m.endedLocked(len(answers))
}

// end records that a worker no longer has call i, which was lost or had an exclusive connection. If
// the worker was unreachable, its pick is kept, so that the chooser prefers others.
func (m *batch) end(i int, unreachable bool) {
	row := m.items[i].waiter.row
	if !unreachable {
		m.c.chooser.Done(row)
	}
	m.mu.Lock()
	if unreachable {
		m.unreachable = append(m.unreachable, row)
	}
	m.done = append(m.done, i)
	m.endedLocked(1)
}

// endedLocked subtracts n calls from those in flight, unlocks mu, and wakes the goroutine of Many
// if it has something to do.
func (m *batch) endedLocked(n int) {
	m.inFlight -= n
	wake := m.inFlight == 0 || len(m.done) > 0
	m.mu.Unlock()
	if wake {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// collect takes the calls in done. Those that may try again go back to todo.
func (m *batch) collect() {
	m.mu.Lock()
	done := m.done
	m.done = nil
	m.mu.Unlock()
	for _, i := range done {
		it := &m.items[i]
		if it.shared != nil {
			m.replies[i], m.failures[i], it.outcome = m.c.resultOf(it.budget, &it.waiter)
		}
		switch {
		case it.outcome == elsewhere && it.unreachable < maxUnreachable:
			it.unreachable++
			m.todo = append(m.todo, i)
		case it.outcome == busy && it.budget.left(it.budget.waitUntil) > 0 && !m.c.calls.closed():
			m.todo = append(m.todo, i)
		}
	}
}

// abandon ends the waits on shared connections. Exclusive connections observe the end of the
// context themselves.
func (m *batch) abandon() {
	for i := range m.items {
		it := &m.items[i]
		if it.shared != nil && it.shared.abandon(&it.waiter) {
			it.waiter.finish()
		}
	}
}
