package client

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// never is the deadline of a call without one.
const never = math.MaxInt64

// A timedConn is a connection whose calls have deadlines.
type timedConn interface {
	// expire ends the calls whose deadline is now or earlier. It returns the earliest deadline of
	// the others, or never.
	expire(now int64) int64
	// cut closes the socket. The calls on it end as lost.
	cut()
}

// A deadlineTimer ends calls at their deadlines. It has one timer for all connections, which runs
// only while calls with a deadline are in flight. Its lock is taken before that of any connection.
type deadlineTimer struct {
	next   atomic.Int64 // when the timer fires; never: it is stopped
	mu     sync.Mutex
	timer  *time.Timer
	conns  map[timedConn]struct{}
	closed bool
}

func newDeadlineTimer() *deadlineTimer {
	s := &deadlineTimer{conns: make(map[timedConn]struct{})}
	s.next.Store(never)
	s.timer = time.AfterFunc(math.MaxInt64, s.fire)
	s.timer.Stop()
	return s
}

// add registers c. It returns false once the timer is closed.
func (s *deadlineTimer) add(c timedConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *deadlineTimer) remove(c timedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// arm makes the timer fire at deadline or earlier. The caller has stored the deadline where the
// connection's expire finds it: either a run of fire that is under way sees the deadline there, or
// arm sees that fire has reset next.
func (s *deadlineTimer) arm(deadline int64) {
	if deadline >= s.next.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armLocked(deadline)
}

func (s *deadlineTimer) armLocked(deadline int64) {
	if deadline >= s.next.Load() || s.closed {
		return
	}
	s.next.Store(deadline)
	s.timer.Reset(time.Duration(deadline - sys.Now()))
}

func (s *deadlineTimer) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next.Store(never)
	now, next := sys.Now(), int64(never)
	for c := range s.conns {
		next = min(next, c.expire(now))
	}
	s.armLocked(next)
}

// close stops the timer and cuts all connections.
func (s *deadlineTimer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	for c := range s.conns {
		c.cut()
	}
}
