package worker

import "errors"

// A Fault is a death that a package brings to the server that reads it.
type Fault uint8

const (
	NoFault            Fault = iota
	DieBeforeAccepting       // the package counts as unread
	DieAfterAccepting        // it holds a slot, and its task does not begin
	DieInAnswer              // half of its answer is sent; the task of a package that is asynchronous does not begin
)

// ErrKilled is the cause of the contexts of tasks whose server was killed.
var ErrKilled = errors.New("the worker was killed")

// Kill ends the server as SIGKILL ends a process, as far as that goes inside one: all
// connections end without an answer, and nothing counts in the row any more, so that Finish
// makes what was running lost. Once stopped, Drain's result, is closed another server may accept
// on the listener. The tasks' contexts end, but tasks go on, and Serve returns when the last of
// them has ended; until then the row must not be freed. Safe for concurrent use, and more than
// once.
func (s *Server) Kill() {
	s.mu.Lock()
	if !s.isKilled() {
		close(s.killed)
	}
	for c := range s.conns {
		_ = c.nc.Close()
	}
	s.mu.Unlock()
	s.Drain(-1, false)
	s.Cut(ErrKilled)
}

// Killed returns a channel that Kill closes.
func (s *Server) Killed() <-chan struct{} { return s.killed }

func (s *Server) isKilled() bool {
	select {
	case <-s.killed:
		return true
	default:
		return false
	}
}

func (s *Server) faultOf(task []byte) Fault {
	if s.cfg.Fault == nil {
		return NoFault
	}
	return s.cfg.Fault(string(task))
}

// dieBefore notes what a process that never read the package would leave behind: the ids that
// it read end before this one.
func (s *Server) dieBefore(c *conn, id uint64) {
	if c.place >= 0 {
		s.cfg.Row.ConnRead(c.place, id-1)
	}
	s.Kill()
}
