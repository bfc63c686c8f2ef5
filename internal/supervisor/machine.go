package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/sharedstate"
)

// A machine decides everything that happens to the processes of one pool. It is pure: step takes
// the time and an event and returns actions, wake says when it wants the next tick; there is no
// clock, no system call and no goroutine in it.
//
// Each index is a slot that holds up to three kinds of process:
//
//	next      booting → ready          the successor
//	serving   accepting                clients choose it
//	retiring  stopping → draining      it finishes its tasks
//
// and every process ends with one exited, or with spawnFailed. After an unplanned end a slot waits,
// without a process, until it is due again. What always holds:
//
//  1. One listener, one acceptor: of an index's processes that were told to accept, all but one
//     have confirmed that they stopped, or are gone.
//  2. At most MaxReplacing replacements that we planned (recycling, reload) run at once, and the
//     old worker of each accepts until its successor is ready. Where the old one accepts no more
//     (a signal, a hard limit, suspicion, a lost socket) the successor is spawned at once.
//  3. The restart that follows a failure waits as long as the index's failure count says: not at
//     all after the first, at least firstDelay after the second in a row, at most maxDelay.
//     Planned exits do not count.
//  4. Each spawned process is finished exactly once, with one reason, and each change of its state
//     is one event.
//  5. A worker that drains has DrainTimeout for it, and a second to confirm that it stopped.
//  6. A shutdown ends: after a cut, or when DrainTimeout is not "for ever", every process has a
//     deadline, and past it the process is killed. Nothing is spawned any more.
type machine struct {
	limits
	random func() float64 // in [0,1)
	phase  phase
	slots  []slot
	spawns uint64 // so far
	asked  uint64 // numbers the wishes, so that they are granted in order
	builds []int  // that have not been dropped
	reload *reload
	cutAt  time.Time // when whatever still runs is killed
	err    error     // why the start failed
	lost   []Lost

	now time.Time // of this step
	out []action  // of this step
}

// limits are the numbers of the pool that count here.
type limits struct {
	workers, maxReplacing      int
	startTimeout, drainTimeout time.Duration // drainTimeout < 0: none
	maxMemory                  int64         // 0: none
	tasks                      []string      // that every worker must know
}

type phase uint8

const (
	idle phase = iota
	starting
	running
	ending
	over
)

const (
	confirmWithin = time.Second            // for a worker to confirm that it stopped
	cutGrace      = 100 * time.Millisecond // between the end of the tasks' contexts and SIGKILL
	stuckTimeout  = 30 * time.Second       // the drain of a worker with a stuck task where DrainTimeout is "for ever"
	rebindEvery   = time.Second            // while a lost socket cannot be bound anew
)

func newMachine(l limits, random func() float64) *machine {
	m := &machine{limits: l, random: random, slots: make([]slot, l.workers), builds: []int{1}}
	for i := range m.slots {
		m.slots[i].index, m.slots[i].build = i, 1
	}
	return m
}

// step takes one event. The actions are to be carried out in order.
func (m *machine) step(now time.Time, ev event) []action {
	m.now, m.out = now, nil
	switch ev := ev.(type) {
	case startWanted:
		m.start()
	case startCancelled:
		m.failStart(ev.cause)
	case reloadWanted:
		m.startReload(ev.build)
	case reloadCancelled:
		if m.reload != nil && m.reload.build == ev.build {
			m.abortReload(ev.cause)
		}
	case shutdownWanted:
		m.shutdown()
	case cutWanted:
		m.cut()
	case tick:
		m.expire()
	case socketGone:
		m.socketGone(&m.slots[ev.index])
	case bound:
		m.bound(&m.slots[ev.index], ev.err)
	case refused:
		m.slots[ev.index].refused = refusedAll
	case spawned:
		m.spawned(ev)
	case spawnFailed:
		m.spawnFailed(ev)
	case received:
		m.received(ev)
	case channelClosed:
		m.channelClosed(ev.key)
	case exited:
		m.exited(ev)
	}
	m.pump()
	m.dropBuilds()
	m.settle()
	return m.out
}

func (m *machine) do(a action) { m.out = append(m.out, a) }

func (m *machine) start() {
	if m.phase != idle {
		return
	}
	m.phase = starting
	for i := range m.slots {
		m.slots[i].why, m.slots[i].due = Started, m.now
	}
}

// failStart ends a pool that is not up yet: nobody's task runs in it.
func (m *machine) failStart(err error) {
	if m.phase != starting {
		return
	}
	m.err = err
	m.close(StartFailed)
	for p := range m.processes() {
		m.kill(p, StartFailed)
	}
}

// find returns the slot and the process of k; both nil when it is gone.
func (m *machine) find(k key) (*slot, *process) {
	s := &m.slots[k.index]
	if s.next != nil && s.next.key == k {
		return s, s.next
	}
	if s.serving != nil && s.serving.key == k {
		return s, s.serving
	}
	for _, p := range s.retiring {
		if p.key == k {
			return s, p
		}
	}
	return nil, nil
}

// processes ranges over all processes, the serving ones first. p may be moved or killed by the
// loop's body, but none may be added.
func (m *machine) processes() func(yield func(*process) bool) {
	return func(yield func(*process) bool) {
		for i := range m.slots {
			s := &m.slots[i]
			for _, p := range []*process{s.serving, s.next} {
				if p != nil && !yield(p) {
					return
				}
			}
			for _, p := range s.retiring {
				if !yield(p) {
					return
				}
			}
		}
	}
}

func (m *machine) spawn(s *slot, why Reason) {
	build := s.build
	if why == Reloaded {
		build = m.reload.build
	}
	m.spawns++
	s.due = time.Time{}
	s.next = &process{key: key{s.index, m.spawns}, build: build, why: why, deadline: m.now.Add(m.startTimeout)}
	m.do(spawn{s.next.key, build})
}

func (m *machine) spawned(ev spawned) {
	_, p := m.find(ev.key)
	if p == nil {
		return
	}
	p.pid = ev.pid
	m.emit(EventStarted, p, p.why, "")
	if p.killed != Unknown {
		m.do(kill{p.key})
	}
}

func (m *machine) spawnFailed(ev spawnFailed) {
	s, p := m.find(ev.key)
	if p == nil {
		return
	}
	m.emit(EventSpawnFailed, p, SpawnFailed, ev.err.Error())
	wanted := p.killed == Unknown
	m.remove(s, p)
	if m.phase == starting && wanted {
		m.failStart(fmt.Errorf("worker %d did not start: %w", ev.index, ev.err))
		return
	}
	p.killed = Unknown // it never lived: this is a failure like any other
	m.gone(s, p, SpawnFailed, ev.err.Error())
}

func (m *machine) received(ev received) {
	s, p := m.find(ev.key)
	if p == nil || p.killed != Unknown {
		return
	}
	switch ev.Kind {
	case control.KindReady:
		m.readied(s, p, ev)
	case control.KindBootError:
		p.words = ev.Text
	case control.KindAccepting:
		m.confirmed(s, p)
	case control.KindStopped:
		m.stopped(s, p)
	case control.KindDraining:
		m.leaves(s, p)
	case control.KindRecycle:
		p.wants = recycleReason(ev.Reason)
	case control.KindHardLimit:
		m.emitTask(EventHardLimit, p, HardLimit, ev.Message)
		m.hardLimit(s, p)
	case control.KindSuspect:
		m.emit(EventSuspect, p, Suspect, ev.Text)
		m.suspect(s, p, ev.Text)
	case control.KindSoftLimit:
		m.emitTask(EventSoftLimit, p, SoftLimit, ev.Message)
	case control.KindDrift:
		m.emit(EventDrift, p, Drift, ev.Text)
	}
}

func recycleReason(wish string) Reason {
	switch wish {
	case "max_age":
		return RecycledAge
	case "max_memory":
		return RecycledMemory
	}
	return RecycledTasks
}

// channelClosed: a process without its control channel follows no orders. It should be on its way
// out; a second later it is killed.
func (m *machine) channelClosed(k key) {
	_, p := m.find(k)
	if p == nil || p.killed != Unknown || p.retire != Unknown {
		return
	}
	if soon := m.now.Add(confirmWithin); p.deadline.IsZero() || p.deadline.After(soon) {
		p.deadline = soon
	}
}

// kill ends p's process group. A process whose fork is still under way is killed as soon as it is
// there.
func (m *machine) kill(p *process, why Reason) {
	p.deadline = time.Time{}
	if p.killed != Unknown {
		return
	}
	p.killed = why
	if p.pid != 0 {
		m.do(kill{p.key})
	}
}

func (m *machine) exited(ev exited) {
	s, p := m.find(ev.key)
	if p == nil {
		return
	}
	why := ev.reason(p)
	m.do(finish{p.key, sharedstate.End{How: uint32(why), Signal: ev.signal, Code: ev.code}})
	e := m.event(EventExited, p, why, p.words)
	e.Signal, e.ExitCode, e.Tasks, e.Stderr = ev.signal, ev.code, ev.tasks, ev.stderr
	m.do(emit{e})
	m.remove(s, p)
	words := lastWords(p, why, ev.exit)
	switch {
	case m.phase == ending:
		for _, t := range ev.tasks {
			m.lost = append(m.lost, Lost{Index: p.index, PID: p.pid, TaskID: t.TaskID, Name: t.Name, Started: t.Started})
		}
	case m.phase == starting && !p.confirmed:
		m.failStart(fmt.Errorf("worker %d (pid %d) did not start: %s", p.index, p.pid, words))
	default:
		m.gone(s, p, why, words)
	}
}

// lastWords says how a process ended and what it said last.
func lastWords(p *process, why Reason, e exit) string {
	end := sharedstate.End{How: uint32(why), Signal: e.signal, Code: e.code}
	if p.killed != Unknown {
		end.Signal = 0 // our own
	}
	text := Describe(end)
	switch {
	case why == BootFailed && p.words == "" && e.signal == 0 && e.code != crashCode:
		text = fmt.Sprintf("boot failed: the program ended (exit status %d) before it reached Start, AttachToServer or RunIfWorker, or in OnWorkerStart", e.code)
	case e.known && e.signal == 0 && e.code == 0:
		text += " (exit status 0)"
	}
	for _, words := range []string{p.words, e.stderr} {
		if words != "" {
			text += ": " + words
		}
	}
	return text
}

func (m *machine) remove(s *slot, p *process) {
	switch p {
	case s.next:
		s.next, s.planned = nil, false
	case s.serving:
		s.serving = nil
	default:
		s.retiring = slices.DeleteFunc(s.retiring, func(q *process) bool { return q == p })
	}
}

func (m *machine) event(kind string, p *process, why Reason, text string) Event {
	return Event{Kind: kind, Reason: why, Index: p.index, PID: p.pid, Generation: p.generation, Text: text}
}

func (m *machine) emit(kind string, p *process, why Reason, text string) {
	m.do(emit{m.event(kind, p, why, text)})
}

func (m *machine) emitTask(kind string, p *process, why Reason, msg control.Message) {
	e := m.event(kind, p, why, msg.Text)
	e.Tasks = []sharedstate.InFlight{{TaskID: msg.TaskID, Name: msg.Task, Started: msg.Started}}
	if e.Text == "" {
		e.Text = "limit " + msg.Limit.String()
	}
	m.do(emit{e})
}

func (m *machine) emitPool(kind string, why Reason, text string) {
	m.do(emit{Event{Kind: kind, Reason: why, Index: -1, Text: text}})
}
