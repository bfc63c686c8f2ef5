package client

import (
	"runtime"
	"slices"
	"syscall"
)

// maxRounds is how many writes a caller makes for others before a goroutine takes over.
const maxRounds = 4

// maxWrite is about how many bytes are copied together for one write.
const maxWrite = 256 << 10

// write writes what is queued, also by others meanwhile. Whoever found nobody
// writing calls it. When others are in flight it yields once, so that
// they can add their frames: one write then carries them all.
func (s *shared) write(crowd bool) {
	for range maxRounds {
		if crowd {
			runtime.Gosched()
		}
		if !s.collect() {
			return
		}
		if err := s.raw.Write(s.attempt); err != nil {
			s.wrote, s.failure = 0, err
		}
		if s.failure == syscall.EAGAIN || s.failure == nil && s.wrote < len(s.out) {
			s.account(s.wrote, nil)
			s.out = s.out[s.wrote:]
			break // a full socket must not hold the caller past its deadline
		}
		if !s.account(s.wrote, s.failure) {
			return
		}
		s.out = s.out[:0]
		crowd = true
	}
	s.c.background.Go(s.writeOn)
}

// writeOn goes on where a caller left off, and may block.
func (s *shared) writeOn() {
	for {
		if len(s.out) > 0 {
			n, err := s.conn.Write(s.out)
			if !s.account(n, err) {
				return
			}
		}
		s.out = nil
		if !s.collect() {
			return
		}
	}
}

// collect copies the queued frames together; false: there are none, and nobody writes any more.
func (s *shared) collect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.stopWritingLocked()
		return false
	}
	s.out = s.out[:0]
	n := 0
	for ; n < len(s.queue) && len(s.out) < maxWrite; n++ {
		w := s.queue[n]
		s.out = append(s.out, w.frame...)
		w.begin = s.handed
		s.handed += int64(len(w.frame))
		w.end = s.handed
	}
	s.queue = slices.Delete(s.queue, 0, n)
	return true
}

func (s *shared) stopWritingLocked() {
	if cap(s.out) > keepBelow {
		s.out = nil
	}
	s.writing = false
	s.idle.Broadcast()
}

// account notes that the socket has taken n bytes more. After an error nothing more is sent: what the socket
// has not taken ends here, what it has taken may still be answered.
func (s *shared) account(n int, err error) bool {
	s.mu.Lock()
	s.sent += int64(n)
	if err == nil {
		s.mu.Unlock()
		return true
	}
	s.ended = true
	s.out = nil
	s.stopWritingLocked()
	failed := s.unqueueLocked()
	for _, w := range slices.Collect(s.waiting.all()) {
		if w.end > s.sent {
			s.failLocked(w, err)
			s.owed--
			failed = append(failed, w)
		}
	}
	over := s.owed == 0
	s.mu.Unlock()
	finishAll(failed)
	if over {
		s.discard()
	}
	return false
}
