package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// close begins the end of the pool and drops all that is planned.
func (m *Machine) close(why tasktype.Reason) {
	m.phase = ending
	m.do(CloseDoors{})
	m.emitPool(tasktype.EventShutdown, why, "")
	if m.reload != nil {
		m.abortReload(ErrEnding)
	}
	for i := range m.slots {
		s := &m.slots[i]
		s.request, s.due, s.rebindAt, s.recoverAt = "", time.Time{}, time.Time{}, time.Time{}
	}
}

// shutdown drains the pool. It cancels due restarts and kills the successors that do not serve yet,
// because they run no tasks.
func (m *Machine) shutdown() {
	switch m.phase {
	case idle, starting:
		m.phase = starting
		m.failStart(ErrEnding)
		return
	case ending, over:
		return
	}
	m.close(tasktype.ReasonShutdown)
	for i := range m.slots {
		s := &m.slots[i]
		if s.next != nil {
			m.kill(s.next, tasktype.ReasonShutdown)
		}
		if s.serving != nil && s.serving.killed == "" {
			m.retire(s, s.serving, tasktype.ReasonShutdown, true)
		}
	}
}

// cut ends the contexts of all tasks and, after CutGrace, the processes.
func (m *Machine) cut() {
	if m.phase != ending || !m.cutAt.IsZero() {
		return
	}
	m.cutAt = m.now.Add(CutGrace)
	for p := range m.processes() {
		if p.killed == "" {
			m.do(Send{p.Key, control.Message{Kind: control.KindCut}})
		}
	}
}

// finishShutdown refuses the backlogs from which no process accepts, and ends the Machine when the
// last process is gone.
func (m *Machine) finishShutdown() {
	if m.phase != ending {
		return
	}
	all := true
	for i := range m.slots {
		s := &m.slots[i]
		acceptor := s.serving != nil || slices.ContainsFunc(s.retiring, (*process).mayAccept)
		if s.refused == notRefused && !acceptor {
			s.refused = refusing
			m.do(Refuse{s.index})
		}
		all = all && s.refused == refusedAll && s.next == nil && s.serving == nil && len(s.retiring) == 0
	}
	if !all {
		return
	}
	m.phase = over
	if m.err != nil {
		m.do(ReplyStart{m.err})
	}
	m.do(Done{m.lost})
}

// Wake returns when the next Tick is due, the zero time if none is.
func (m *Machine) Wake() time.Time {
	var first time.Time
	at := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if m.phase == over {
		return first
	}
	at(m.cutAt)
	for p := range m.processes() {
		at(p.deadline)
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.due.After(m.now) {
			at(s.due)
		}
		if s.degraded {
			at(s.recoverAt)
		}
		at(s.rebindAt)
	}
	return first
}

// expire acts on what is due now, except starts, which startDue makes.
func (m *Machine) expire() {
	past := func(t time.Time) bool { return !t.IsZero() && !m.now.Before(t) }
	m.extendDeadlines(m.now.Sub(m.Wake()))
	cut := past(m.cutAt)
	if cut {
		m.cutAt = time.Time{}
	}
	for p := range m.processes() {
		switch {
		case cut:
			m.kill(p, tasktype.ReasonShutdown)
		case past(p.deadline):
			m.kill(p, p.overdue(m.StartTimeout))
		}
	}
	for i := range m.slots {
		s := &m.slots[i]
		if past(s.recoverAt) && s.degraded {
			s.degraded, s.recoverAt = false, time.Time{}
			m.do(Show{s.index, false, s.restarts})
			m.do(
				Emit{
					tasktype.Event{
						Kind:   tasktype.EventRecovered,
						Reason: tasktype.ReasonStable,
						Worker: tasktype.Worker{Index: s.index},
					},
				},
			)
		}
		if past(s.rebindAt) {
			s.rebindAt = time.Time{}
			m.do(Bind{s.index})
		}
	}
}

// extendDeadlines moves the deadlines of the processes if this tick is very late: then the host was
// stopped or starved, and most likely its workers too.
func (m *Machine) extendDeadlines(late time.Duration) {
	if late < confirmWithin {
		return
	}
	for p := range m.processes() {
		if !p.deadline.IsZero() {
			p.deadline = p.deadline.Add(late + confirmWithin)
		}
		if !p.drainBy.IsZero() {
			p.drainBy = p.drainBy.Add(late + confirmWithin)
		}
	}
}

// overdue returns what p failed to do in time.
func (p *process) overdue(startTimeout time.Duration) tasktype.Reason {
	switch {
	case p.state == booting:
		if p.words == "" {
			p.words = fmt.Sprintf("not ready within %s", startTimeout)
		}
		return tasktype.ReasonBootTimeout
	case p.retire == tasktype.ReasonHardLimit:
		return tasktype.ReasonHardLimit
	case p.state != draining:
		return tasktype.ReasonUnresponsive
	}
	return tasktype.ReasonDrainTimeout
}

// Closing reports whether the end of the pool has begun.
func (m *Machine) Closing() bool { return m.phase == ending || m.phase == over }
