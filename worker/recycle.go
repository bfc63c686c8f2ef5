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

// Recycle says when a worker requests a successor; 0: never. Each worker adds at most a tenth, at
// random, to each of its limits, so that workers that started together and have the same load do
// not request successors together.
type Recycle struct {
	MaxTasks  int           // tasks that have ended
	MaxAge    time.Duration // since the worker accepts
	MaxMemory int64         // resident bytes, compared each second while tasks run, and once after the last
}

// recycling says what is left until a server requests a successor. Server.mu guards it.
type recycling struct {
	tasks  int64 // tasks that may still end; math.MaxInt64: no limit
	memory int64 // bytes; math.MaxInt64: no limit
	ageAt  int64 // CLOCK_MONOTONIC; 0: no limit
	asked  bool
}

func newRecycling(r Recycle) recycling {
	return recycling{tasks: spread(int64(r.MaxTasks)), memory: spread(r.MaxMemory)}
}

// spread adds up to a tenth to limit, at random. For limit <= 0 it returns math.MaxInt64.
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

// beginAge sets the age limit, from now.
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

// requestSuccessor calls OnRecycle, once, unless the worker drains. The caller holds Server.mu, and
// Serve waits for its goroutine.
func (s *Server) requestSuccessor(reason tasktype.Reason) {
	if s.recycle.asked || s.drain.begun || s.cfg.OnRecycle == nil {
		return
	}
	s.recycle.asked = true
	s.wg.Go(func() { s.cfg.OnRecycle(reason) })
}

// taskEnded counts a task that has ended. The caller holds Server.mu.
func (s *Server) taskEnded() {
	if s.recycle.tasks--; s.recycle.tasks <= 0 {
		s.requestSuccessor(tasktype.ReasonRecycledTasks)
	}
}

// checkMemory compares the resident size with its limit.
func (s *Server) checkMemory() {
	if s.recycle.memory == math.MaxInt64 || memstat.Resident(os.Getpid()) <= s.recycle.memory {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestSuccessor(tasktype.ReasonRecycledMemory)
}
