package worker

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/tasktype"
)

const (
	maxDump   = 256 << 10   // bytes of the goroutine dump of a soft limit
	dumpEvery = time.Second // between dumps: one stops the worker for a moment, and the parent has to read it
)

// suspension is the delay of a timer from which the process counts as stopped or frozen, and not as
// slow on a busy machine. Its tasks could not run either.
const suspension = time.Second

// lateness returns for how long the process was suspended, 0 if it was not, given a timer that was
// set for at and fires at now. It adds a second, because the suspension began before at.
func lateness(at, now int64) int64 {
	if at == 0 || now-at < int64(suspension) {
		return 0
	}
	return now - at + int64(suspension)
}

// An Overdue is a task that has passed its soft or hard limit.
type Overdue struct {
	TaskID  uint64
	Task    string
	Limit   time.Duration
	Started int64  // CLOCK_MONOTONIC, ns
	Dump    []byte // soft limit: all goroutines, at most 256 KiB; nil within 1 s of the last dump
}

// A schedule says when the watch wakes, in instants of CLOCK_MONOTONIC; 0: never.
type schedule struct {
	wakeAt  int64
	auditAt int64
	began   bool // a call has begun since the last sweep
}

// limitEnd returns when the smaller of two limits passes. A limit <= 0 is no limit.
func limitEnd(now int64, a, b time.Duration) int64 {
	limit := a
	if limit <= 0 || b > 0 && b < a {
		limit = b
	}
	switch {
	case limit <= 0:
		return 0
	case int64(limit) > math.MaxInt64-now:
		return math.MaxInt64
	}
	return now + int64(limit)
}

// earlier returns the earlier of two instants; 0 is no instant.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// due returns the next instant at which the watch must act on k, 0 if there is none.
func (k *call) due() int64 {
	var t int64
	if k.cancel && !k.callerPast {
		t = k.expire
	}
	if !k.softPast {
		t = earlier(t, k.limit(k.soft))
	}
	if !k.hardPast {
		t = earlier(t, k.limit(k.hard))
	}
	if !k.long && k.s.cfg.Processors.vary() {
		t = earlier(t, k.started+int64(longTask))
	}
	return t
}

// limit returns when a limit passes, without the time for which the process was suspended.
func (k *call) limit(at int64) int64 {
	if at == 0 || at > math.MaxInt64-k.suspended {
		return at
	}
	return at + k.suspended
}

// arm makes the watch wake at t or earlier. For t = 0 it does nothing. The caller holds Server.mu.
func (s *Server) arm(t int64) {
	if t == 0 || s.watch.wakeAt != 0 && s.watch.wakeAt <= t {
		return
	}
	s.watch.wakeAt = t
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runWatch enforces time limits, audits and the worker's age limit until end is closed. It has one
// timer, which waits only for the age limit while no task runs.
func (s *Server) runWatch(end <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-end:
			return
		case <-s.wake:
		case <-timer.C:
		}
		if next := s.sweep(sys.Now()); next != 0 {
			timer.Reset(time.Duration(next - sys.Now()))
		}
	}
}

// pastDue holds the calls that passed one of their instants since the last sweep.
type pastDue struct{ caller, soft, hard []*call }

// collect marks what k has passed and adds k to the lists. The caller holds Server.mu.
func (p *pastDue) collect(s *Server, k *call, now int64) {
	if k.cancel && k.expire != 0 && !k.callerPast && now >= k.expire {
		k.callerPast = true
		p.caller = append(p.caller, k)
	}
	if k.soft != 0 && !k.softPast && now >= k.limit(k.soft) {
		k.softPast = true
		p.soft = append(p.soft, k)
	}
	if k.hard != 0 && !k.hardPast && now >= k.limit(k.hard) {
		k.hardPast = true
		s.running.overdue++
		k.c.stuck = k.c.stuck || k.inline
		p.hard = append(p.hard, k)
	}
	if !k.long && now >= k.started+int64(longTask) {
		k.long = true
		s.running.long++
	}
}

// sweep acts on everything that is due, and returns when to sweep again; 0: not before arm asks for
// it.
func (s *Server) sweep(now int64) (next int64) {
	var past pastDue
	s.mu.Lock()
	late := lateness(s.watch.wakeAt, now)
	s.watch.wakeAt = 0
	s.running.each(func(k *call) {
		k.suspended += late
		past.collect(s, k, now)
		next = earlier(next, k.due())
	})
	long := s.running.long
	audit := s.watch.auditAt != 0 && now >= s.watch.auditAt
	if audit {
		s.watch.auditAt = 0
		if s.running.n > 0 {
			s.watch.auditAt = now + int64(auditEvery)
		}
	}
	if s.recycle.ageAt != 0 && now >= s.recycle.ageAt {
		s.recycle.ageAt = 0
		s.requestSuccessor(tasktype.ReasonRecycledAge)
	}
	if s.watch.began && s.cfg.Processors.vary() {
		next = earlier(next, now+int64(longTask)) // so that not each of many short calls wakes the watch
	}
	s.watch.began = false
	next = earlier(next, earlier(s.watch.auditAt, s.recycle.ageAt))
	s.watch.wakeAt = next
	s.mu.Unlock()

	s.shareProcessors(long, audit)
	for _, k := range past.hard {
		s.hardLimit(k)
	}
	for _, k := range past.caller {
		k.ctx.end(ErrCallerGone)
	}
	s.softLimits(past.soft)
	if audit {
		s.audit()
		s.checkMemory()
	}
	return next
}

// softLimits takes a dump, ends the contexts of the tasks, and sends the dump to the parent. A
// parent or a client that hangs must not block the watch, so softLimits and hardLimit send from
// goroutines of their own.
func (s *Server) softLimits(past []*call) {
	var dump []byte
	if len(past) > 0 && s.cfg.OnSoftLimit != nil && s.mayDump() {
		dump = make([]byte, maxDump)
		dump = dump[:runtime.Stack(dump, true)]
	}
	for _, k := range past {
		k.ctx.end(ErrSoftLimit)
		limit := time.Duration(k.soft - k.started)
		if s.cfg.OnSoftLimit != nil {
			overdue := Overdue{k.taskID, k.typ.name, limit, k.started, dump}
			s.wg.Go(func() { s.cfg.OnSoftLimit(overdue) })
		}
	}
}

func (s *Server) mayDump() bool {
	now := sys.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.dumpAfter {
		return false
	}
	s.dumpAfter = now + int64(dumpEvery)
	return true
}

// hardLimit answers the caller at once. The task keeps its slot and counts as running until it ends
// by itself, or as lost with the process. The parent replaces the worker and makes it drain; the
// drain does not wait for this task.
func (s *Server) hardLimit(k *call) {
	s.cfg.Row.SetCause(tasktype.ReasonHardLimit)
	s.cfg.Row.SetAccepting(false)
	limit := time.Duration(k.hard - k.started)
	s.log.Error("time limit passed", "worker", s.cfg.Index, "task", k.typ.name, "id", k.taskID, "limit", limit)
	s.wg.Go(func() {
		k.respond(k.fail(protocol.StatusTaskError, fmt.Sprintf("time limit: %s still ran after %s", k.typ.name, limit)))
		s.wakeEnd()
	})
	if s.cfg.OnHardLimit != nil {
		overdue := Overdue{TaskID: k.taskID, Task: k.typ.name, Limit: limit, Started: k.started}
		s.wg.Go(func() { s.cfg.OnHardLimit(overdue) })
	}
}
