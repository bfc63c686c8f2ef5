package worker

import (
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/tasktype"
)

// Recycle says when a worker wants a successor; 0: never. Each worker adds a tenth at most,
// drawn at random, to each of its limits, so that workers that started together and are loaded
// evenly do not want successors together.
type Recycle struct {
	MaxTasks  int           // tasks that gave their slot back
	MaxAge    time.Duration // since it accepts
	MaxMemory int64         // resident bytes, looked at with the audit: while tasks run, and once within a second after the last
}

// recycling is how far a server is from wanting a successor. Server.mu.
type recycling struct {
	tasks  int64 // that may still end; math.MaxInt64: any number
	memory int64 // math.MaxInt64: any size
	ageAt  int64 // CLOCK_MONOTONIC; 0: none
	wished bool
}

func newRecycling(r Recycle) recycling {
	return recycling{tasks: spread(int64(r.MaxTasks)), memory: spread(r.MaxMemory)}
}

// spread adds up to a tenth to a limit; one that is not above 0 is none.
func spread(limit int64) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	more := rand.Int64N(limit/10 + 1)
	if limit > math.MaxInt64-more {
		return math.MaxInt64
	}
	return limit + more
}

// beginAge starts the age's clock.
func (s *Server) beginAge() {
	age := spread(int64(s.cfg.Recycle.MaxAge))
	now := sys.Now()
	if age > math.MaxInt64-now {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recycle.ageAt = now + age
	s.arm(s.recycle.ageAt)
}

// wish asks for a successor, once: a worker that is on its way out, or has asked before, does
// not. Server.mu is held by a caller that holds up the end of Serve.
func (s *Server) wish(reason tasktype.Reason) {
	if s.recycle.wished || s.drain.begun || s.cfg.OnRecycle == nil {
		return
	}
	s.recycle.wished = true
	s.wg.Go(func() { s.cfg.OnRecycle(reason) })
}

// taskEnded counts a task that gave its slot back. Server.mu is held.
func (s *Server) taskEnded() {
	if s.recycle.tasks--; s.recycle.tasks <= 0 {
		s.wish(tasktype.ReasonRecycledTasks)
	}
}

// weigh compares the resident size with its limit.
func (s *Server) weigh() {
	if s.recycle.memory == math.MaxInt64 || memstat.Resident(os.Getpid()) <= s.recycle.memory {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wish(tasktype.ReasonRecycledMemory)
}
