package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
)

// close ends everything but the processes.
func (m *machine) close(why Reason) {
	m.phase = ending
	m.do(closeDoors{})
	m.emitPool(EventShutdown, why, "")
	if m.reload != nil {
		m.abortReload(errEnding)
	}
	for i := range m.slots {
		s := &m.slots[i]
		s.wish, s.due, s.rebindAt, s.recoverAt = Unknown, time.Time{}, time.Time{}, time.Time{}
	}
}

// shutdown drains the pool. Indexes that wait for their restart are done with, successors that do
// not serve yet are killed: none of them runs a task.
func (m *machine) shutdown() {
	switch m.phase {
	case idle, starting:
		m.phase = starting
		m.failStart(errEnding)
		return
	case ending, over:
		return
	}
	m.close(Shutdown)
	for i := range m.slots {
		s := &m.slots[i]
		if s.next != nil {
			m.kill(s.next, Shutdown)
		}
		if s.serving != nil && s.serving.killed == Unknown {
			m.retire(s, s.serving, Shutdown, true)
		}
	}
}

// cut ends the contexts of all tasks, and soon after the processes.
func (m *machine) cut() {
	if m.phase != ending || !m.cutAt.IsZero() {
		return
	}
	m.cutAt = m.now.Add(cutGrace)
	for p := range m.processes() {
		if p.killed == Unknown {
			m.do(send{p.key, control.Message{Kind: control.KindCut}})
		}
	}
}

// settle answers the backlogs that nobody accepts from any more, and ends the machine when the last
// process is gone.
func (m *machine) settle() {
	if m.phase != ending {
		return
	}
	all := true
	for i := range m.slots {
		s := &m.slots[i]
		acceptor := s.serving != nil || slices.ContainsFunc(s.retiring, (*process).mayAccept)
		if s.refused == notRefused && !acceptor {
			s.refused = refusing
			m.do(refuse{s.index})
		}
		all = all && s.refused == refusedAll && s.next == nil && s.serving == nil && len(s.retiring) == 0
	}
	if !all {
		return
	}
	m.phase = over
	if m.err != nil {
		m.do(replyStart{m.err})
	}
	m.do(done{m.lost})
}

// wake returns when the next tick is wanted; zero: nothing waits for the time.
func (m *machine) wake() time.Time {
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

// expire does what has become due at this time; pump does the rest.
func (m *machine) expire() {
	past := func(t time.Time) bool { return !t.IsZero() && !m.now.Before(t) }
	m.forgive(m.now.Sub(m.wake()))
	cut := past(m.cutAt)
	if cut {
		m.cutAt = time.Time{}
	}
	for p := range m.processes() {
		switch {
		case cut:
			m.kill(p, Shutdown)
		case past(p.deadline):
			m.kill(p, p.overdue(m.startTimeout))
		}
	}
	for i := range m.slots {
		s := &m.slots[i]
		if past(s.recoverAt) && s.degraded {
			s.degraded, s.recoverAt = false, time.Time{}
			m.do(show{s.index, false, s.restarts})
			m.do(emit{Event{Kind: EventRecovered, Reason: Stable, Index: s.index}})
		}
		if past(s.rebindAt) {
			s.rebindAt = time.Time{}
			m.do(bind{s.index})
		}
	}
}

// forgive moves the deadlines of the processes when this tick is very late: then the host was
// stopped or starved, most likely its workers too, and none of them is to blame.
func (m *machine) forgive(late time.Duration) {
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

// overdue says what p failed to do in time. What it said last stays.
func (p *process) overdue(startTimeout time.Duration) Reason {
	switch {
	case p.state == booting:
		if p.words == "" {
			p.words = fmt.Sprintf("not ready within %s", startTimeout)
		}
		return BootTimeout
	case p.retire == HardLimit:
		return HardLimit
	case p.state != draining:
		return Unresponsive
	}
	return DrainTimeout
}

// closing says whether the pool's files are, or will be, removed.
func (m *machine) closing() bool { return m.phase == ending || m.phase == over }
