package worker

import "errors"

// A Fault makes the server simulate a crash when it reads a package.
type Fault uint8

const (
	NoFault            Fault = iota
	DieBeforeAccepting       // the package counts as unread
	DieAfterAccepting        // the package holds a slot, and its task does not begin
	DieInAnswer              // half of the answer is sent; the task of an asynchronous package does not begin
)

// ErrKilled is the cause for which a task's context ends at Kill.
var ErrKilled = errors.New("the worker was killed")

// Kill simulates SIGKILL: all connections end without an answer, and the server no longer counts in
// the row, so that Finish counts the running tasks as lost. Once stopped, the result of Drain, is
// closed, another server may accept on the listener. The tasks' contexts end, but tasks may run on;
// Serve returns when the last one has ended, and until then the row must not be freed. Kill may be
// called more than once, and is safe for concurrent use.
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

// dieBefore leaves in the row what a process that never read the package leaves: the ids that it
// read end before this one.
func (s *Server) dieBefore(c *conn, id uint64) {
	if c.place >= 0 {
		s.cfg.Row.ConnRead(c.place, id-1)
	}
	s.Kill()
}
