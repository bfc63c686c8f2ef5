package worker

import (
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// drainState is how far the drain is.
type drainState struct {
	begun  bool
	end    bool  // of the pool: the backlog is refused
	until  int64 // when Serve gives up, CLOCK_MONOTONIC; 0: never
	cutAt  int64 // when the contexts end; 0: not any more
	cut    error // why the contexts have ended; nil: they have not
	idleAt int64 // since when no task runs; 0: some do
}

// limit returns when Serve gives up at the latest. Once no task runs, what is left is answers
// that clients have still to take, and readers whose descriptor a task has closed.
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

// forgive moves the limits by the time in which the process was suspended.
func (d *drainState) forgive(late int64) {
	if d.until != 0 {
		d.until += late
	}
	if d.cutAt != 0 {
		d.cutAt += late
	}
}

// Drain stops accepting: accepting becomes 0, then no more connections are accepted and stopped
// is closed, then each connection drains as PROTOCOL.md says. Tasks go on, at most for within
// (negative: for ever), and not for those that are past their hard limit; in its last second, or last fifth if that is shorter, their contexts
// end with ErrDrain. At the end of within Serve returns an error that lists what still runs.
// With end, what sits in the backlog is accepted and answered with -2 before stopped is closed;
// a later call can still ask for it as long as stopped is open.
//
// A second call may shorten within, never lengthen it. Drain does not block and is safe for
// concurrent use, before Serve too: Serve then begins with the drain.
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
		// It fails on a closed listener only, which accepts nothing either.
		_ = s.cfg.Listener.SetDeadline(time.Unix(1, 0))
	}
	s.poke()
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

// atEnd says whether the drain is the pool's end.
func (s *Server) atEnd() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain.end
}

// poke wakes awaitEnd.
func (s *Server) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// noticeEmpty wakes awaitEnd when nothing is left that is worth waiting for. Server.mu is held.
func (s *Server) noticeEmpty() {
	if s.drain.begun && s.onlyOverdue() {
		s.poke()
	}
}

// onlyOverdue says whether every task that is left is past its hard limit and
// has been answered for, and every connection that is left waits for such a task alone. Server.mu is held.
func (s *Server) onlyOverdue() bool {
	if s.running.n != s.running.overdue {
		return false
	}
	for c := range s.conns {
		if !c.stuck || c.owed.Load() > 1 {
			return false
		}
	}
	return true
}

// refuseBacklog answers, at the end of the pool, what waits in the listener's backlog. wait
// returns when the last of it is answered.
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

// drainConns begins the drain of every connection. None is added any more.
func (s *Server) drainConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		s.wg.Go(c.drain)
	}
}

// awaitEnd waits until every task and connection has ended, but for tasks that are past their
// hard limit, or until the drain's limit has passed.
func (s *Server) awaitEnd() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var planned int64
	for {
		s.mu.Lock()
		s.drain.forgive(lateness(planned, sys.Now()))
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

// abandon closes the connections and returns an error that names the tasks which still run.
// Where none does, all that is lost is answers that a client did not take.
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
