package client

import (
	"runtime"
	"slices"
	"syscall"
)

// maxLedWrites is how many writes one caller makes before a goroutine takes over.
const maxLedWrites = 4

// maxWrite is about how many bytes of frames are copied together for one write.
const maxWrite = 256 << 10

// write writes the queued frames, including those that other calls queue meanwhile. The caller that
// set s.writing calls it. If other calls are in flight, write yields once before each write, so
// that they can add their frames.
func (s *shared) write(othersInFlight bool) {
	for range maxLedWrites {
		if othersInFlight {
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
			break // a full socket must not block the caller past its deadline
		}
		if !s.account(s.wrote, s.failure) {
			return
		}
		s.out = s.out[:0]
		othersInFlight = true
	}
	s.c.background.Go(s.writeOn)
}

// writeOn continues the writing of a caller. It may block.
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

// collect copies the queued frames into s.out. If there are none, it ends the writing and returns
// false.
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

// account records that the socket took n more bytes. After an error nothing more is written: calls
// whose frame the socket did not take whole fail, the others may still be answered.
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
