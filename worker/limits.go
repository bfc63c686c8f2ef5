package worker

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// maxDump bounds the goroutine dump of a soft limit, in bytes.
const maxDump = 256 << 10

// A schedule is what the watch wakes for: instants of CLOCK_MONOTONIC, 0: none.
type schedule struct {
	wakeAt  int64
	auditAt int64
}

// limitEnd returns when the smaller of two limits passes; a limit that is not above 0 is none.
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

// earlier returns the earlier of two instants, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// due returns the next instant at which the watch has something to do for k; 0: none.
func (k *call) due() int64 {
	var t int64
	if k.cancel && !k.callerPast {
		t = k.expire
	}
	if !k.softPast {
		t = earlier(t, k.soft)
	}
	if !k.hardPast {
		t = earlier(t, k.hard)
	}
	return t
}

// arm makes the watch wake at t at the latest; 0 is nothing. Server.mu is held.
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

// runWatch keeps time limits and audits until end is closed. One timer serves all; it is not
// armed while nothing runs.
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

// sweep acts on everything that is due and returns when to come again; 0: when armed.
func (s *Server) sweep(now int64) (next int64) {
	var gone, soft, hard []*call
	s.mu.Lock()
	s.watch.wakeAt = 0
	s.running.each(func(k *call) {
		if k.cancel && k.expire != 0 && !k.callerPast && now >= k.expire {
			k.callerPast = true
			gone = append(gone, k)
		}
		if k.soft != 0 && !k.softPast && now >= k.soft {
			k.softPast = true
			soft = append(soft, k)
		}
		if k.hard != 0 && !k.hardPast && now >= k.hard {
			k.hardPast = true
			hard = append(hard, k)
		}
		next = earlier(next, k.due())
	})
	audit := s.watch.auditAt != 0 && now >= s.watch.auditAt
	if audit {
		s.watch.auditAt = 0
		if s.running.n > 0 {
			s.watch.auditAt = now + int64(auditEvery)
		}
	}
	next = earlier(next, s.watch.auditAt)
	s.watch.wakeAt = next
	s.mu.Unlock()

	for _, k := range hard {
		s.hardLimit(k)
	}
	for _, k := range gone {
		k.ctx.end(ErrCaller)
	}
	for _, k := range soft {
		s.softLimit(k)
	}
	if audit {
		s.audit()
	}
	return next
}

// softLimit ends the task's context and tells the parent what the worker was doing. Neither a
// parent nor a client that is stuck may hold up the watch: what waits for them has a goroutine
// of its own, here and in hardLimit.
func (s *Server) softLimit(k *call) {
	k.ctx.end(ErrSoftLimit)
	limit := time.Duration(k.soft - k.started)
	s.log.Warn("soft time limit passed", "worker", s.cfg.Index, "task", k.typ.name, "id", k.taskID, "limit", limit)
	if s.cfg.OnSoftLimit != nil {
		dump := make([]byte, maxDump)
		dump = dump[:runtime.Stack(dump, true)]
		s.wg.Go(func() { s.cfg.OnSoftLimit(k.taskID, k.typ.name, limit, dump) })
	}
}

// hardLimit answers the caller at once. The task keeps its slot: it stays in running until it
// ends by itself, or with the process, as lost.
func (s *Server) hardLimit(k *call) {
	s.cfg.Row.SetAccepting(false)
	limit := time.Duration(k.hard - k.started)
	s.log.Error("time limit passed", "worker", s.cfg.Index, "task", k.typ.name, "id", k.taskID, "limit", limit)
	s.wg.Go(func() {
		k.respond(k.fail(protocol.StatusTaskError, fmt.Sprintf("time limit: %s still ran after %s", k.typ.name, limit)))
	})
	if s.cfg.OnHardLimit != nil {
		s.wg.Go(func() { s.cfg.OnHardLimit(k.taskID, k.typ.name, limit) })
	}
}
