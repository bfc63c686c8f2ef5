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

// errLate ends the wait of a call whose deadline has passed.
var errLate = errors.New("the deadline has passed")

// A waiter is one call on a shared connection. Its fields belong to the
// connection, under its lock, from submit until it is finished.
type waiter struct {
	id         uint64
	frame      []byte
	deadline   int64
	begin, end int64         // where its frame lies in the stream; 0, 0: not handed to a write yet
	done       chan struct{} // of capacity one; unless it is one of many
	many       *batch
	call       int             // its place in the batch
	row        sharedstate.Row // whose in-flight count the batch has taken for it

	// What came of it.
	link     *link
	response protocol.Response // Data is memory of its own
	lost     *loss             // why there is no response
}

// A loss is how a call ended without a response.
type loss struct {
	err      error
	evidence evidence
}

// finish tells the caller. Nobody else has w any more.
func (w *waiter) finish() {
	if w.many != nil {
		w.many.end(w.call, false)
		return
	}
	w.done <- struct{}{}
}

// A shared connection carries many calls at once: frames of several callers go
// out in one write, and one goroutine, which lives while answers are owed,
// hands them out by id. What a caller no longer waits for is dropped.
type shared struct {
	*link
	c   *Client
	raw syscall.RawConn

	mu      sync.Mutex
	waiting pending
	queue   []*waiter // those in waiting that no write has taken yet
	owed    int       // answers that are to come, or late ones too
	reading bool
	writing bool
	idle    sync.Cond // signalled when writing ends
	ended   bool      // takes no new package: the worker drains, or the connection is lost
	handed  int64     // bytes that were given to a write
	sent    int64     // bytes that the socket has taken

	// The rest belongs to whoever writes.
	out     []byte
	attempt func(fd uintptr) bool // made once: a closure a write would be an allocation
	wrote   int
	failure error

	answers []answer // of one read; the reader's
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

// submit queues the packages of ws and sees to it that they are written. It
// fails when the connection takes no new package; they are untouched then.
func (s *shared) submit(ws ...*waiter) bool {
	deadline := int64(never)
	s.mu.Lock()
	if s.ended || s.usedUp(len(ws)) {
		s.mu.Unlock()
		return false
	}
	crowd := s.waiting.n > 0
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

	s.c.sweeper.arm(deadline)
	if lead {
		s.write(crowd)
	}
	if read {
		s.c.background.Go(s.read)
	}
	return true
}

// maxAnswers is how many answers are handed out together. It bounds the memory that one result may keep of others.
const maxAnswers = 64

// An answer is a response that is not handed out yet.
type answer struct {
	protocol.Response      // Data may point into the reader's buffer
	owned             bool // it does not
	waiter            *waiter
}

// read hands answers out until none is owed, or the connection ends.
func (s *shared) read() {
	for {
		r, owned, err := s.link.read()
		if err == nil && r.ID != 0 {
			s.answers = append(s.answers, answer{r, owned, nil})
			if s.reader.Ready() && len(s.answers) < maxAnswers {
				continue
			}
		}
		s.hand(s.answers)
		clear(s.answers)
		s.answers = s.answers[:0]
		switch {
		case err != nil:
			s.lost(err)
			return
		case r.ID == 0:
			s.notice(&r)
		}
		if s.reader.Buffered() == 0 && !s.settle() {
			return
		}
	}
}

// hand gives the answers to those who wait for them.
func (s *shared) hand(answers []answer) {
	s.mu.Lock()
	for i := range answers {
		a := &answers[i]
		a.waiter = s.waiting.take(a.ID)
	}
	s.owed = max(s.owed-len(answers), s.waiting.n)
	s.mu.Unlock()
	copyData(answers)
	for len(answers) > 0 {
		first := answers[0].waiter
		n := 1
		switch {
		case first == nil:
		case first.many == nil:
			first.response = answers[0].Response
			first.finish()
		default:
			for n < len(answers) && answers[n].waiter != nil && answers[n].waiter.many == first.many {
				n++
			}
			first.many.answered(answers[:n])
		}
		answers = answers[n:]
	}
}

// copyData copies the data of answers out of the reader's buffer. Those of batches share memory: they likely go together.
func copyData(answers []answer) {
	size := 0
	for i := range answers {
		if a := &answers[i]; !a.owned && a.waiter != nil && a.waiter.many != nil {
			size += len(a.Data)
		}
	}
	shared := make([]byte, 0, size)
	for i := range answers {
		switch a := &answers[i]; {
		case a.owned || a.waiter == nil:
		case a.waiter.many == nil:
			a.Data = slices.Clone(a.Data)
		default:
			begin := len(shared)
			shared = append(shared, a.Data...)
			a.Data = shared[begin:len(shared):len(shared)]
		}
	}
}

// settle says whether more answers are owed; false: none is, and nobody reads any more.
func (s *shared) settle() bool {
	s.mu.Lock()
	s.reading = s.owed > 0
	more, over := s.reading, !s.reading && s.ended
	s.mu.Unlock()
	if over {
		s.discard()
	}
	return more
}

// notice ends the sending: the worker drains. What was not handed to a write may go elsewhere.
func (s *shared) notice(r *protocol.Response) {
	s.mu.Lock()
	if last, ok := protocol.ParseNotice(r); ok {
		s.noticed, s.lastRead = true, last
	}
	s.ended = true
	unsent := s.unqueueLocked()
	s.mu.Unlock()
	finishAll(unsent)
}

// unqueueLocked takes back what no write has taken.
func (s *shared) unqueueLocked() []*waiter {
	unsent := s.queue
	s.queue = nil
	for _, w := range unsent {
		s.failLocked(w, syscall.EPIPE)
	}
	s.owed -= len(unsent)
	return unsent
}

// failLocked takes w out, which will have no answer.
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
		return nothing
	case w.end <= s.sent:
		return whole
	case s.writing:
		return unknown
	case w.begin < s.sent:
		return part
	}
	return nothing
}

// lost ends all calls when the connection has ended. Only what a write returned says
// which frames the socket had taken, so it waits for one that is under way.
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

// abandon ends the wait of w, for which its caller no longer waits. It fails
// when w is, or is about to be, finished.
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

func (s *shared) sweep(now int64) int64 {
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

// retire lets no new package in, and closes the connection once no answer is owed.
func (s *shared) retire() {
	s.mu.Lock()
	s.ended = true
	over := s.owed == 0
	s.mu.Unlock()
	if over {
		s.discard()
	}
}

// discard closes the connection; the reader, if there is one, ends with it.
func (s *shared) discard() {
	s.c.sweeper.remove(s)
	_ = s.conn.Close()
}
