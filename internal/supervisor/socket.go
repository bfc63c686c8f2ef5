package supervisor

import "time"

// socketGone: somebody removed the socket file of s. The connections that exist are not harmed; new
// ones need a new socket, and that a new process.
func (m *machine) socketGone(s *slot) {
	if m.closing() {
		return
	}
	m.do(emit{Event{Kind: EventSocketLost, Reason: SocketLost, Index: s.index}})
	m.do(bind{s.index})
}

func (m *machine) bound(s *slot, err error) {
	s.rebindAt = time.Time{}
	switch {
	case m.closing():
	case err != nil:
		s.rebindAt = m.now.Add(rebindEvery)
	default:
		m.moveToSocket(s)
	}
}

// moveToSocket replaces the processes that hold the old socket.
func (m *machine) moveToSocket(s *slot) {
	if n := s.next; n != nil {
		m.kill(n, SocketLost)
	}
	if s.serving != nil {
		m.setAside(s, s.serving, SocketLost)
	}
}
