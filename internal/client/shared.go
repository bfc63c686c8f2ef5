package client

import (
	"errors"
	"slices"
	"sync"
	"syscall"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// errLate ends the wait of a call whose deadline has passed, or whose context has ended.
var errLate = errors.New("the deadline has passed")

// A waiter is a call in flight on a shared connection. From submit to finish, the lock of the
// connection protects its fields.
type waiter struct {
	id         uint64
	frame      []byte
	deadline   int64
	begin, end int64           // where the frame lies in the stream; 0, 0: no write has taken it
	done       chan struct{}   // of capacity one; unused in a batch
	batch      *batch          // nil: a single call
	call       int             // its index in the batch
	row        sharedstate.Row // the batch's pick for it

	// The result.
	link     *link
	response protocol.Response // its Data belongs to the caller
	lost     *loss             // why there is no response; nil: there is one
}

// A loss says how a call ended without a response.
type loss struct {
	err      error
	evidence evidence
}

// finish wakes the caller. Nothing else may refer to w.
func (w *waiter) finish() {
	if w.batch != nil {
		w.batch.end(w.call, false)
		return
	}
	w.done <- struct{}{}
}

// A shared connection carries many calls at once. The frames of several callers go out in one
// write. One goroutine, which lives while answers are outstanding, reads the answers and
// distributes them by id. It drops an answer for which no caller waits any more.
type shared struct {
	*link
	c   *Client
	raw syscall.RawConn

	mu      sync.Mutex
	waiting pending
	queue   []*waiter // those in waiting whose frame no write has taken yet
	owed    int       // outstanding answers, including those that no caller waits for
	reading bool
	writing bool
	idle    sync.Cond // signalled when writing ends
	ended   bool      // accepts no new package: the worker drains, or the connection is lost
	handed  int64     // bytes given to a write
	sent    int64     // bytes that the socket took

	// The goroutine that set writing owns these.
	out     []byte
	attempt func(fd uintptr) bool // made once, because a closure for each write would be an allocation
	wrote   int
	failure error

	answers []answer // read together; the reader owns them
}

func newShared(c *Client, l *link) (*shared, error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &shared{link: l, c: c, raw: raw}
	s.idle.L = &s.mu
	s.attempt = func(fd uintptr) bool {
		s.failure = syscall.EINTR
		for s.failure == syscall.EINTR {
			s.wrote, s.failure = syscall.Write(int(fd), s.out)
		}
		s.wrote = max(s.wrote, 0)
		return true
	}
	return s, nil
}

// submit queues the packages of ws and makes sure that they are written. It returns false, and does
// nothing, if the connection accepts no new package.
func (s *shared) submit(ws ...*waiter) bool {
	deadline := int64(never)
	s.mu.Lock()
	if s.ended || s.usedUp(len(ws)) {
		s.mu.Unlock()
		return false
	}
	othersInFlight := s.waiting.n > 0
	for _, w := range ws {
		w.id = s.nextID()
		w.link = s.link
		w.begin, w.end, w.lost = 0, 0, nil
		protocol.SetID(w.frame, w.id)
		s.waiting.add(w)
		deadline = min(deadline, w.deadline)
	}
	s.queue = append(s.queue, ws...)
	s.owed += len(ws)
	lead, read := !s.writing, !s.reading
	s.writing, s.reading = true, true
	s.mu.Unlock()

	s.c.deadlines.arm(deadline)
	if lead {
		s.write(othersInFlight)
	}
	if read {
		s.c.background.Go(s.read)
	}
	return true
}

// unqueueLocked fails the calls whose frame no write took, and returns them.
func (s *shared) unqueueLocked() []*waiter {
	unsent := s.queue
	s.queue = nil
	for _, w := range unsent {
		s.failLocked(w, syscall.EPIPE)
	}
	s.owed -= len(unsent)
	return unsent
}

// failLocked removes w, which gets no answer.
func (s *shared) failLocked(w *waiter, err error) {
	s.waiting.take(w.id)
	w.response, w.lost = protocol.Response{}, &loss{err, evidence{
		shared: true, sent: s.extentLocked(w), end: endOf(err), id: w.id, at: sys.Now(),
		readKnown: s.noticed, lastRead: s.lastRead,
	}}
}

func (s *shared) extentLocked(w *waiter) extent {
	switch {
	case w.end == 0:
		return sentNothing
	case w.end <= s.sent:
		return sentWhole
	case s.writing:
		return sentUnknown
	case w.begin < s.sent:
		return sentPart
	}
	return sentNothing
}

// lost fails all calls after the end of the connection. It waits for a write that is in progress,
// because only its result says which frames the socket took.
func (s *shared) lost(err error) {
	s.discard()
	s.mu.Lock()
	s.ended = true
	for s.writing {
		s.idle.Wait()
	}
	s.queue = nil
	all := slices.Collect(s.waiting.all())
	for _, w := range all {
		s.failLocked(w, err)
	}
	s.mu.Unlock()
	finishAll(all)
}

func finishAll(ws []*waiter) {
	for _, w := range ws {
		w.finish()
	}
}

// abandon ends the wait of w on behalf of its caller. It returns false if w is finished, or about
// to be.
func (s *shared) abandon(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.find(w.id) != w {
		return false
	}
	s.abandonLocked(w)
	return true
}

func (s *shared) abandonLocked(w *waiter) {
	if i := slices.Index(s.queue, w); i >= 0 && w.end == 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.owed--
	}
	s.failLocked(w, errLate)
}

func (s *shared) expire(now int64) int64 {
	var late []*waiter
	next := int64(never)
	s.mu.Lock()
	for w := range s.waiting.all() {
		if w.deadline <= now {
			late = append(late, w)
		} else {
			next = min(next, w.deadline)
		}
	}
	for _, w := range late {
		s.abandonLocked(w)
	}
	s.mu.Unlock()
	finishAll(late)
	return next
}

func (s *shared) cut() { _ = s.conn.Close() }

// retire accepts no new package, and closes the connection once no answer is outstanding.
func (s *shared) retire() {
	s.mu.Lock()
	s.ended = true
	over := s.owed == 0
	s.mu.Unlock()
	if over {
		s.discard()
	}
}

// discard closes the connection. A reader ends with it.
func (s *shared) discard() {
	s.c.deadlines.remove(s)
	_ = s.conn.Close()
}
