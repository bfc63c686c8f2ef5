package client

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// never is a deadline that does not come.
const never = math.MaxInt64

// A sweepable is a connection whose calls have deadlines.
type sweepable interface {
	// sweep ends the calls whose deadline is not after now and returns the earliest of the others, or never.
	sweep(now int64) int64
	// cut closes the socket; the calls on it end as lost.
	cut()
}

// A sweeper watches the deadlines of all calls with one timer, which is armed
// only while calls wait. Its lock is taken before any connection's.
type sweeper struct {
	next   atomic.Int64 // when the timer fires
	mu     sync.Mutex
	timer  *time.Timer
	conns  map[sweepable]struct{}
	closed bool
}

func newSweeper() *sweeper {
	s := &sweeper{conns: make(map[sweepable]struct{})}
	s.next.Store(never)
	s.timer = time.AfterFunc(math.MaxInt64, s.sweep)
	s.timer.Stop()
	return s
}

// add begins to watch c; it fails once the sweeper is closed.
func (s *sweeper) add(c sweepable) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *sweeper) remove(c sweepable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// arm sees to it that a sweep comes at deadline or before. The caller has
// stored the deadline where its connection's sweep finds it: either a sweep that is
// under way sees it there, or arm sees that the sweep has disarmed the timer.
func (s *sweeper) arm(deadline int64) {
	if deadline >= s.next.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armLocked(deadline)
}

func (s *sweeper) armLocked(deadline int64) {
	if deadline >= s.next.Load() || s.closed {
		return
	}
	s.next.Store(deadline)
	s.timer.Reset(time.Duration(deadline - sys.Now()))
}

func (s *sweeper) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next.Store(never)
	now, next := sys.Now(), int64(never)
	for c := range s.conns {
		next = min(next, c.sweep(now))
	}
	s.armLocked(next)
}

// close cuts all connections and stops the timer.
func (s *sweeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	for c := range s.conns {
		c.cut()
	}
}
