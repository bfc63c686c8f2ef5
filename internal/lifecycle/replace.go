package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// readied handles the message of a booting process that it can serve.
func (m *Machine) readied(s *slot, p *process, ev Received) {
	if p.state != booting {
		return
	}
	if lacks := missing(m.Tasks, ev.Names); len(lacks) > 0 {
		m.reject(
			p,
			"it does not know the tasks "+strings.Join(
				lacks,
				", ",
			)+"; register them before Start or RunIfWorker, in every process",
		)
		return
	}
	if m.MaxMemory > 0 && ev.Resident > m.MaxMemory {
		m.reject(
			p,
			fmt.Sprintf(
				"the worker memory limit of %d bytes is below the %d bytes that it holds when idle",
				m.MaxMemory,
				ev.Resident,
			),
		)
		return
	}
	p.state, p.deadline = ready, time.Time{}
	m.handOver(s)
}

func missing(want, have []string) []string {
	var lacks []string
	for _, name := range want {
		if !slices.Contains(have, name) {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

// reject kills a process that booted but cannot serve. If it is of a new build, the reload aborts
// at once: another try would not help.
func (m *Machine) reject(p *process, words string) {
	p.words = words
	if m.reload != nil && m.reload.build == p.build {
		m.abortReload(fmt.Errorf("worker %d of the new program (pid %d): %s", p.Index, p.pid, words))
	}
	m.kill(p, tasktype.ReasonBootFailed)
}

// handOver moves an index from the serving process to the ready one: clients choose the new
// process, the old one stops accepting, and when it has confirmed that, or is gone, the new one
// accepts. Meanwhile connections wait in the backlog.
func (m *Machine) handOver(s *slot) {
	n := s.next
	if n == nil || n.state != ready || n.killed != "" || m.phase == ending {
		return
	}
	if !n.current {
		n.current, s.request = true, ""
		m.do(SetCurrent{n.Key})
	}
	if s.serving != nil {
		m.retire(s, s.serving, n.why, false)
	}
	if slices.ContainsFunc(s.retiring, (*process).mayAccept) {
		return
	}
	n.state, n.told = accepting, true
	n.deadline = m.now.Add(m.StartTimeout)
	s.next, s.serving = nil, n
	m.do(Send{n.Key, control.Message{Kind: control.KindAccept}})
}

// confirmed handles the message of a process that it accepts connections. Its start is complete.
func (m *Machine) confirmed(s *slot, p *process) {
	if p.state != accepting || p.confirmed {
		return
	}
	p.confirmed, p.deadline = true, time.Time{}
	s.planned, s.build = false, p.build
	s.recoverAt = s.failures.serve(m.now)
	m.emit(tasktype.EventReady, p, p.why, "")
	if m.phase == starting &&
		!slices.ContainsFunc(m.slots, func(s slot) bool { return s.serving == nil || !s.serving.confirmed }) {
		m.phase = running
		m.do(ReplyStart{})
	}
	m.finishReload()
}

// retire orders p to stop accepting and to finish its tasks. end: p has no successor, so it refuses
// its backlog.
func (m *Machine) retire(s *slot, p *process, why tasktype.Reason, end bool) {
	m.leave(s, p, why)
	m.do(Send{p.Key, control.Message{Kind: control.KindDrain, End: end, Within: p.within}})
}

// leave makes p a retiring process. p has confirmWithin to confirm that it stopped, and its tasks
// have DrainTimeout to end.
func (m *Machine) leave(s *slot, p *process, why tasktype.Reason) {
	m.remove(s, p)
	m.makeRoom(s)
	p.retire, p.state = why, stopping
	p.within = m.DrainTimeout
	if why == tasktype.ReasonHardLimit && p.within < 0 {
		p.within = StuckTimeout
	}
	p.deadline = m.now.Add(confirmWithin)
	if p.within >= 0 {
		p.drainBy = m.now.Add(p.within + confirmWithin)
	}
	s.retiring = append(s.retiring, p)
	m.emit(tasktype.EventDraining, p, why, "")
}

// makeRoom bounds the generations of an index that live at once: it kills the oldest retiring
// process if two are draining.
func (m *Machine) makeRoom(s *slot) {
	live := 0
	for _, p := range s.retiring {
		if p.killed == "" {
			live++
		}
	}
	if live < 2 {
		return
	}
	i := slices.IndexFunc(s.retiring, func(p *process) bool { return p.killed == "" })
	why := tasktype.ReasonDrainTimeout
	if s.retiring[i].retire == tasktype.ReasonHardLimit {
		why = tasktype.ReasonHardLimit
	}
	m.kill(s.retiring[i], why)
}

func (m *Machine) stopped(s *slot, p *process) {
	if p.state != stopping {
		return
	}
	p.state, p.deadline = draining, p.drainBy
	m.handOver(s)
}

// leaves handles the message of a process that it drains because it received a signal.
func (m *Machine) leaves(s *slot, p *process) {
	if p.retire != "" || p.state == booting {
		return
	}
	m.leave(s, p, tasktype.ReasonDrained)
	m.succeed(s, tasktype.ReasonDrained)
}

// setAside drains a process that no longer serves as it should, and makes its successor due at
// once, even if MaxReplacing others are being replaced.
func (m *Machine) setAside(s *slot, p *process, why tasktype.Reason) {
	if p.retire != "" || !p.told {
		return
	}
	m.retire(s, p, why, false)
	m.succeed(s, why)
}

// hardLimit handles a task of p that has passed its hard limit. The other tasks of p get the time
// of a drain, at most StuckTimeout if DrainTimeout is negative; then p is killed.
func (m *Machine) hardLimit(s *slot, p *process) {
	m.setAside(s, p, tasktype.ReasonHardLimit)
	if p.within >= 0 {
		return
	}
	p.retire, p.within = tasktype.ReasonHardLimit, StuckTimeout
	p.drainBy = m.now.Add(StuckTimeout + confirmWithin)
	if p.state == draining {
		p.deadline = p.drainBy
	}
	m.do(Send{p.Key, control.Message{Kind: control.KindDrain, Within: p.within, End: m.phase == ending}})
}

// succeed makes the successor of a process that just left due now, unless a successor is booting or
// has just failed to boot.
func (m *Machine) succeed(s *slot, why tasktype.Reason) {
	if s.next == nil && s.serving == nil {
		s.why = why
		if s.due.Before(m.now) {
			s.due = m.now
		}
		m.dropRequest(s)
	}
	m.handOver(s)
}

func (m *Machine) suspect(s *slot, p *process, text string) {
	if p.retire != "" || !p.told {
		return
	}
	m.retire(s, p, tasktype.ReasonSuspect, false)
	m.fail(s, tasktype.ReasonSuspect, text)
	m.handOver(s)
}

// requestReplacement notes that p needs a successor. p serves until that one is ready.
func (m *Machine) requestReplacement(s *slot, p *process, why tasktype.Reason) {
	if p != s.serving || s.request != "" || s.next != nil || m.phase == ending {
		return
	}
	m.asked++
	s.request, s.asked, s.due = why, m.asked, time.Time{}
}

// dropRequest drops the request of a process that is gone. The request of a reload stays.
func (m *Machine) dropRequest(s *slot) {
	if s.request == tasktype.ReasonReloaded {
		s.why = tasktype.ReasonReloaded
		return
	}
	s.request = ""
}

// gone decides what follows the end of a process that was removed from its slot.
func (m *Machine) gone(s *slot, p *process, why tasktype.Reason, words string) {
	if p.retire != "" || m.phase == ending {
		m.handOver(s)
		return
	}
	if p.killed == tasktype.ReasonReloadAborted || p.killed == tasktype.ReasonSocketLost {
		if s.serving == nil && s.next == nil {
			s.why, s.due = p.killed, m.now
			m.dropRequest(s)
		}
		return
	}
	m.fail(s, why, words)
	if m.reload != nil && m.reload.build == p.build && !p.confirmed {
		m.reloadFailed(fmt.Errorf("worker %d of the new program (pid %d) did not boot: %s", p.Index, p.pid, words))
	}
	m.handOver(s)
}

// fail counts a failure of the index. If no process serves or boots, a restart is due after the
// backoff. If the old worker still serves, its replacement waits for as long.
func (m *Machine) fail(s *slot, why tasktype.Reason, words string) {
	delay := s.failures.add(m.now, m.random())
	s.restarts++
	s.recoverAt = time.Time{}
	switch {
	case s.next != nil:
	case s.serving != nil:
		s.due = m.now.Add(delay)
	default:
		s.why, s.due = why, m.now.Add(delay)
		m.dropRequest(s)
	}
	degrades := !s.degraded && s.failures.count >= DegradedAt-0.5
	s.degraded = s.degraded || degrades
	m.do(Show{s.index, s.degraded, s.restarts})
	if degrades {
		text := fmt.Sprintf(
			"%d failures in a row, next start in %s, the last: %s",
			int(s.failures.count+0.5),
			delay.Round(time.Millisecond),
			words,
		)
		m.do(
			Emit{
				tasktype.Event{
					Kind:   tasktype.EventDegraded,
					Reason: why,
					Worker: tasktype.Worker{Index: s.index},
					Text:   text,
				},
			},
		)
	}
}

// startDue spawns the processes that are due and permitted.
func (m *Machine) startDue() {
	if m.phase != starting && m.phase != running {
		return
	}
	planned := 0
	requested := false
	m.requestReloads()
	for i := range m.slots {
		s := &m.slots[i]
		if s.serving != nil && s.serving.wants != "" {
			m.requestReplacement(s, s.serving, s.serving.wants)
		}
		if s.serving == nil && s.next == nil && !s.due.IsZero() && !m.now.Before(s.due) {
			s.planned = false
			m.spawn(s, s.why)
		}
		if s.planned {
			planned++
		}
		requested = requested || s.request != ""
	}
	for ; requested && planned < m.MaxReplacing && m.phase == running; planned++ {
		s := m.oldestRequest()
		if s == nil {
			return
		}
		s.planned = true
		m.spawn(s, s.request)
	}
}

// oldestRequest returns the slot whose planned replacement may start next. One that still drains an
// earlier generation lets the others go first.
func (m *Machine) oldestRequest() *slot {
	var oldest *slot
	for i := range m.slots {
		s := &m.slots[i]
		able := s.request != "" && s.next == nil && s.serving != nil && s.serving.confirmed && len(s.retiring) == 0 &&
			!m.now.Before(s.due)
		if able && (oldest == nil || s.asked < oldest.asked) {
			oldest = s
		}
	}
	return oldest
}
