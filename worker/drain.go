package worker

import (
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// drainState is how far the drain is.
type drainState struct {
	begun  bool
	end    bool          // of the pool: the backlog is refused
	within time.Duration // the limit as it was given
	until  int64         // when Serve gives up, CLOCK_MONOTONIC; 0: never
	cutAt  int64         // when the contexts end; 0: not any more
	cut    error         // why the contexts have ended; nil: they have not
}

// Drain stops accepting: accepting becomes 0, then no more connections are accepted and stopped
// is closed, then each connection drains as PROTOCOL.md says. Tasks go on, at most for within
// (negative: for ever); in its last second, or last fifth if that is shorter, their contexts
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
			d.within, d.until, d.cutAt = within, until, until-int64(min(time.Second, within/5))
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

// noticeEmpty wakes awaitEnd when nothing is left. Server.mu is held.
func (s *Server) noticeEmpty() {
	if s.drain.begun && s.running.n == 0 && len(s.conns) == 0 {
		s.poke()
	}
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

// awaitEnd waits until every task and connection has ended, or the limit has passed.
func (s *Server) awaitEnd() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		empty := s.running.n == 0 && len(s.conns) == 0
		until, next := s.drain.until, s.drain.until
		cut := s.drain.cutAt != 0 && sys.Now() >= s.drain.cutAt
		if cut {
			s.drain.cutAt = 0
		} else if s.drain.cutAt != 0 {
			next = s.drain.cutAt
		}
		s.mu.Unlock()
		if empty {
			return nil
		}
		if cut {
			s.Cut(ErrDrain)
		}
		if until != 0 && sys.Now() >= until {
			return s.abandon()
		}
		timer.Stop()
		if next != 0 {
			timer.Reset(time.Duration(next - sys.Now()))
		}
		select {
		case <-s.changed:
		case <-timer.C:
		}
	}
}

// abandon closes the connections and returns an error that names the tasks which did not end in
// time. Where none runs, all that is lost is answers that a client did not take.
func (s *Server) abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
	if s.running.n == 0 {
		return nil
	}
	return s.runningError(s.drain.within)
}
