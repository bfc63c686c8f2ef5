package lifecycle

import (
	"time"

	"github.com/taskd-go/task/tasktype"
)

// socketGone handles the removal of the socket file of s. Existing connections go on. New
// connections need a new socket, and a new socket needs a new process.
func (m *Machine) socketGone(s *slot) {
	if m.Closing() {
		return
	}
	m.do(
		Emit{
			tasktype.Event{
				Kind:   tasktype.EventSocketLost,
				Reason: tasktype.ReasonSocketLost,
				Worker: tasktype.Worker{Index: s.index},
			},
		},
	)
	m.do(Bind{s.index})
}

func (m *Machine) bound(s *slot, err error) {
	s.rebindAt = time.Time{}
	switch {
	case m.Closing():
	case err != nil:
		s.rebindAt = m.now.Add(rebindEvery)
	default:
		m.moveToSocket(s)
	}
}

// moveToSocket replaces the processes that have the old socket.
func (m *Machine) moveToSocket(s *slot) {
	if n := s.next; n != nil {
		m.kill(n, tasktype.ReasonSocketLost)
	}
	if s.serving != nil {
		m.setAside(s, s.serving, tasktype.ReasonSocketLost)
	}
}
