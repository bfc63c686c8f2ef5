package client

import (
	"slices"

	"github.com/taskd-go/task/protocol"
)

// maxAnswers is how many answers are distributed together. It bounds how much memory of other
// results one result can keep alive.
const maxAnswers = 64

// An answer is a response that has not been distributed yet.
type answer struct {
	protocol.Response
	owned  bool // Data does not point into the reader's buffer
	waiter *waiter
}

// read distributes answers until none is outstanding or the connection ends.
func (s *shared) read() {
	for {
		r, owned, err := s.link.read()
		if err == nil && r.ID != 0 {
			s.answers = append(s.answers, answer{r, owned, nil})
			if s.reader.Ready() && len(s.answers) < maxAnswers {
				continue
			}
		}
		s.distribute(s.answers)
		clear(s.answers)
		s.answers = s.answers[:0]
		switch {
		case err != nil:
			s.lost(err)
			return
		case r.ID == 0:
			s.notice(&r)
		}
		if s.reader.Buffered() == 0 && !s.moreOwed() {
			return
		}
	}
}

// distribute gives the answers to their waiters.
func (s *shared) distribute(answers []answer) {
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
		case first.batch == nil:
			first.response = answers[0].Response
			first.finish()
		default:
			for n < len(answers) && answers[n].waiter != nil && answers[n].waiter.batch == first.batch {
				n++
			}
			first.batch.answered(answers[:n])
		}
		answers = answers[n:]
	}
}

// copyData copies the data of answers out of the reader's buffer. Answers to batches share memory:
// they are probably dropped together.
func copyData(answers []answer) {
	size := 0
	for i := range answers {
		if a := &answers[i]; !a.owned && a.waiter != nil && a.waiter.batch != nil {
			size += len(a.Data)
		}
	}
	shared := make([]byte, 0, size)
	for i := range answers {
		switch a := &answers[i]; {
		case a.owned || a.waiter == nil:
		case a.waiter.batch == nil:
			a.Data = slices.Clone(a.Data)
		default:
			begin := len(shared)
			shared = append(shared, a.Data...)
			a.Data = shared[begin:len(shared):len(shared)]
		}
	}
}

// moreOwed reports whether answers are outstanding. If none is, it ends the reading.
func (s *shared) moreOwed() bool {
	s.mu.Lock()
	s.reading = s.owed > 0
	more, over := s.reading, !s.reading && s.ended
	s.mu.Unlock()
	if over {
		s.discard()
	}
	return more
}

// notice stops the sending, because the worker drains. Calls whose frame no write took may go
// elsewhere.
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
