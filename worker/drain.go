package worker

import (
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// drainState is the state of the drain.
type drainState struct {
	begun  bool
	end    bool  // the pool ends: the backlog is refused
	until  int64 // when Serve gives up, CLOCK_MONOTONIC; 0: never
	cutAt  int64 // when the contexts end; 0: they have, or never do
	cut    error // why the contexts ended; nil: they have not
	idleAt int64 // since when no task runs; 0: tasks run
}

// limit returns when Serve gives up. Once no task runs, Serve waits only for clients to read their
// answers, and for readers whose descriptor a task has closed: at most answerTimeout and a second
// more.
func (d *drainState) limit(now int64, running int, answerTimeout time.Duration) int64 {
	if running > 0 {
		d.idleAt = 0
		return d.until
	}
	if d.idleAt == 0 {
		d.idleAt = now
	}
	return earlier(d.until, d.idleAt+int64(answerTimeout+time.Second))
}

// extend moves the limits by the time for which the process was suspended.
func (d *drainState) extend(late int64) {
	if d.until != 0 {
		d.until += late
	}
	if d.cutAt != 0 {
		d.cutAt += late
	}
}

// Drain stops accepting: the row's accepting becomes false, then the server accepts no more
// connections and closes stopped, then each connection drains as PROTOCOL.md says. Tasks run on for
// at most within (negative: without a bound); the server does not wait for tasks that are past
// their hard limit. In the last second of within, or its last fifth if that is shorter, the tasks'
// contexts end with ErrDrain. At the end of within Serve returns an error that lists the tasks that
// still run. With end, the server accepts the connections in the backlog and answers their calls
// with -2 before it closes stopped; a later call of Drain can ask for that until stopped is closed.
//
// A second call may shorten within but not lengthen it. Drain does not block. It is safe for
// concurrent use, and may be called before Serve, which then begins with the drain.
func (s *Server) Drain(within time.Duration, end bool) (stopped <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.drain
	d.end = d.end || end
	if within >= 0 {
		if until := sys.Now() + int64(within); d.until == 0 || until < d.until {
			d.until, d.cutAt = until, until-int64(min(time.Second, within/5))
		}
	}
	if !d.begun {
		d.begun = true
		s.cfg.Row.SetAccepting(false)
		close(s.draining)
		// It fails only for a closed listener, which accepts nothing.
		_ = s.cfg.Listener.SetDeadline(time.Unix(1, 0))
	}
	s.wakeEnd()
	return s.stopped
}

func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// atEnd reports whether the pool ends with this drain.
func (s *Server) atEnd() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain.end
}

// wakeEnd wakes awaitEnd.
func (s *Server) wakeEnd() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// noticeEmpty wakes awaitEnd if it has nothing left to wait for. The caller holds Server.mu.
func (s *Server) noticeEmpty() {
	if s.drain.begun && s.onlyOverdue() {
		s.wakeEnd()
	}
}

// onlyOverdue reports whether every remaining task is past its hard limit and has been answered,
// and every remaining connection waits only for such a task. The caller holds Server.mu.
func (s *Server) onlyOverdue() bool {
	if s.running.n != s.running.overdue {
		return false
	}
	for c := range s.conns {
		if !c.stuck || c.pending.Load() > 1 {
			return false
		}
	}
	return true
}

// refuseBacklog refuses the calls in the listener's backlog at the end of the pool. wait returns
// when the last one is answered.
func (s *Server) refuseBacklog() (wait func()) {
	if !s.atEnd() {
		return func() {}
	}
	r := &refuser{
		greeting: s.greeting,
		max:      s.cfg.MaxPackageSize,
		barrier:  s.barrier,
		admits:   s.admitsPeer,
		grace:    s.cfg.DrainGrace,
	}
	r.backlog(s.cfg.Listener, s.cfg.DrainGrace)
	return r.wg.Wait
}

// drainConns begins the drain of every connection. No connection is added after it.
func (s *Server) drainConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		s.wg.Go(c.drain)
	}
}

// awaitEnd waits until every connection and every task that is not past its hard limit has ended,
// or until the drain's limit has passed.
func (s *Server) awaitEnd() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var planned int64
	for {
		s.mu.Lock()
		s.drain.extend(lateness(planned, sys.Now()))
		over := s.onlyOverdue()
		until := s.drain.limit(sys.Now(), s.running.n, s.answerTimeout)
		next := until
		cut := s.drain.cutAt != 0 && sys.Now() >= s.drain.cutAt
		if cut {
			s.drain.cutAt = 0
		} else if s.drain.cutAt != 0 {
			next = s.drain.cutAt
		}
		s.mu.Unlock()
		if over {
			return s.abandon("past their time limits")
		}
		if cut {
			s.Cut(ErrDrain)
		}
		if until != 0 && sys.Now() >= until {
			return s.abandon("after the drain limit")
		}
		timer.Stop()
		planned = next
		if next != 0 {
			timer.Reset(time.Duration(next - sys.Now()))
		}
		select {
		case <-s.changed:
		case <-timer.C:
		}
	}
}

// abandon closes the connections and returns an error that names the tasks that still run. Without
// such tasks only answers that a client did not read are lost.
func (s *Server) abandon(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
	if s.running.n == 0 {
		return nil
	}
	return s.runningError(why)
}
