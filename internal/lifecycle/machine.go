package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// A Machine decides what happens to the processes of one pool. Step takes the time and an Input and
// returns Actions; Wake returns when the next Tick is due. A Machine has no clock, makes no system
// call and starts no goroutine. It is not safe for concurrent use.
//
// Each index is a slot with up to three kinds of process:
//
//	next      booting → ready          the successor
//	serving   accepting                clients choose it
//	retiring  stopping → draining      it finishes its tasks
//
// Each process ends with one Exited or SpawnFailed. After an unplanned end a slot has no process
// until its next start is due. What always holds:
//
//  1. One process accepts on a listener: of an index's processes that were ordered to accept, all
//     but one have confirmed that they stopped, or are gone.
//  2. At most MaxReplacing planned replacements (recycling, reload) run at once, and the old worker
//     of each accepts until its successor is ready. If the old worker has stopped accepting (a
//     signal, a hard limit, suspicion, a lost socket), its successor is spawned at once.
//  3. The restart after a failure waits as long as the index's failure count says: not at all after
//     the first failure, at least FirstDelay after the second in a row, at most MaxDelay. Planned
//     exits do not count.
//  4. Each spawned process is finished exactly once, with one reason. Each change of its state is
//     one event.
//  5. A worker that drains has DrainTimeout for its tasks, and a second to confirm that it stopped.
//  6. A shutdown ends: after a cut, or if DrainTimeout is not negative, every process has a
//     deadline, at which it is killed. Nothing is spawned after the shutdown began.
type Machine struct {
	Limits
	random func() float64 // in [0,1)
	phase  phase
	slots  []slot
	spawns uint64 // so far
	asked  uint64 // numbers the requests for replacements, which are granted in order
	builds []int  // that have not been dropped
	reload *reload
	cutAt  time.Time // when the remaining processes are killed
	err    error     // why the start failed
	lost   []Lost

	now time.Time // of this step
	out []Action  // of this step
}

// Limits are the settings of the pool that a Machine needs.
type Limits struct {
	Workers, MaxReplacing      int
	StartTimeout, DrainTimeout time.Duration // DrainTimeout < 0: none
	MaxMemory                  int64         // 0: none
	Tasks                      []string      // that every worker must know
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
	CutGrace      = 100 * time.Millisecond // between the end of the tasks' contexts and SIGKILL
	StuckTimeout  = 30 * time.Second       // bounds the drain of a worker with a stuck task if DrainTimeout is negative
	rebindEvery   = time.Second            // between tries to bind a lost socket again
)

// New returns the Machine of a pool that has not started. random returns numbers in [0,1).
func New(l Limits, random func() float64) *Machine {
	m := &Machine{Limits: l, random: random, slots: make([]slot, l.Workers), builds: []int{1}}
	for i := range m.slots {
		m.slots[i].index, m.slots[i].build = i, 1
	}
	return m
}

// Step takes one Input and returns the Actions to carry out, in order.
func (m *Machine) Step(now time.Time, ev Input) []Action {
	m.now, m.out = now, nil
	switch ev := ev.(type) {
	case StartWanted:
		m.start()
	case StartCancelled:
		m.failStart(ev.Cause)
	case ReloadWanted:
		m.startReload(ev.Build)
	case ReloadCancelled:
		if m.reload != nil && m.reload.build == ev.Build {
			m.abortReload(ev.Cause)
		}
	case ShutdownWanted:
		m.shutdown()
	case CutWanted:
		m.cut()
	case Tick:
		m.expire()
	case SocketGone:
		m.socketGone(&m.slots[ev.Index])
	case Bound:
		m.bound(&m.slots[ev.Index], ev.Err)
	case Refused:
		m.slots[ev.Index].refused = refusedAll
	case Spawned:
		m.spawned(ev)
	case SpawnFailed:
		m.spawnFailed(ev)
	case Received:
		m.received(ev)
	case ChannelClosed:
		m.channelClosed(ev.Key)
	case Exited:
		m.exited(ev)
	}
	m.startDue()
	m.dropBuilds()
	m.finishShutdown()
	return m.out
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) start() {
	if m.phase != idle {
		return
	}
	m.phase = starting
	for i := range m.slots {
		m.slots[i].why, m.slots[i].due = tasktype.ReasonStarted, m.now
	}
}

// failStart ends a pool that has not started. No task runs in it.
func (m *Machine) failStart(err error) {
	if m.phase != starting {
		return
	}
	m.err = err
	m.close(tasktype.ReasonStartFailed)
	for p := range m.processes() {
		m.kill(p, tasktype.ReasonStartFailed)
	}
}

// find returns the slot and the process of k, nil and nil if the process is gone.
func (m *Machine) find(k Key) (*slot, *process) {
	s := &m.slots[k.Index]
	if s.next != nil && s.next.Key == k {
		return s, s.next
	}
	if s.serving != nil && s.serving.Key == k {
		return s, s.serving
	}
	for _, p := range s.retiring {
		if p.Key == k {
			return s, p
		}
	}
	return nil, nil
}

// processes ranges over all processes, the serving ones first. The loop's body may move or kill the
// process, but not add one.
func (m *Machine) processes() func(yield func(*process) bool) {
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

func (m *Machine) spawn(s *slot, why tasktype.Reason) {
	build := s.build
	if why == tasktype.ReasonReloaded {
		build = m.reload.build
	}
	m.spawns++
	s.due = time.Time{}
	s.next = &process{Key: Key{s.index, m.spawns}, build: build, why: why, deadline: m.now.Add(m.StartTimeout)}
	m.do(Spawn{s.next.Key, build})
}

func (m *Machine) spawned(ev Spawned) {
	_, p := m.find(ev.Key)
	if p == nil {
		return
	}
	p.pid = ev.PID
	m.emit(tasktype.EventStarted, p, p.why, "")
	if p.killed != "" {
		m.do(Kill{p.Key})
	}
}

func (m *Machine) spawnFailed(ev SpawnFailed) {
	s, p := m.find(ev.Key)
	if p == nil {
		return
	}
	m.emit(tasktype.EventSpawnFailed, p, tasktype.ReasonSpawnFailed, ev.Err.Error())
	wanted := p.killed == ""
	m.remove(s, p)
	if m.phase == starting && wanted {
		m.failStart(fmt.Errorf("worker %d did not start: %w", ev.Index, ev.Err))
		return
	}
	p.killed = "" // it never lived: this is a failure like any other
	m.gone(s, p, tasktype.ReasonSpawnFailed, ev.Err.Error())
}

func (m *Machine) received(ev Received) {
	s, p := m.find(ev.Key)
	if p == nil || p.killed != "" {
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
		m.emitTask(tasktype.EventHardLimit, p, tasktype.ReasonHardLimit, ev)
		m.hardLimit(s, p)
	case control.KindSuspect:
		m.emit(tasktype.EventSuspect, p, tasktype.ReasonSuspect, ev.Text)
		m.suspect(s, p, ev.Text)
	case control.KindSoftLimit:
		m.emitTask(tasktype.EventSoftLimit, p, tasktype.ReasonSoftLimit, ev)
	case control.KindDrift:
		m.emit(tasktype.EventDrift, p, tasktype.ReasonDrift, ev.Text)
	}
}

// recycleReason returns the Reason of a message. A worker of another build may send a word that is
// not in this program's list.
func recycleReason(word string) tasktype.Reason {
	if r := tasktype.Reason(word); slices.Contains(tasktype.Reasons(), r) {
		return r
	}
	return tasktype.ReasonRecycledTasks
}

// channelClosed handles the end of a process's control channel. The process gets no more orders and
// should exit; a second later it is killed.
func (m *Machine) channelClosed(k Key) {
	_, p := m.find(k)
	if p == nil || p.killed != "" || p.retire != "" {
		return
	}
	if soon := m.now.Add(confirmWithin); p.deadline.IsZero() || p.deadline.After(soon) {
		p.deadline = soon
	}
}

// kill kills p's process group, as soon as p is spawned.
func (m *Machine) kill(p *process, why tasktype.Reason) {
	p.deadline = time.Time{}
	if p.killed != "" {
		return
	}
	p.killed = why
	if p.pid != 0 {
		m.do(Kill{p.Key})
	}
}

func (m *Machine) exited(ev Exited) {
	s, p := m.find(ev.Key)
	if p == nil {
		return
	}
	why := ev.reason(p)
	m.do(Finish{p.Key, why, ev.Signal, ev.Code})
	e := m.event(tasktype.EventExited, p, why, p.words)
	e.Signal, e.ExitCode, e.Tasks, e.Stderr = ev.Signal, ev.Code, ev.Tasks, ev.Stderr
	m.do(Emit{e})
	m.remove(s, p)
	words := lastWords(p, why, ev.Exit)
	switch {
	case m.phase == ending:
		for _, t := range ev.Tasks {
			m.lost = append(m.lost, Lost{p.worker(), t})
		}
	case m.phase == starting && !p.confirmed:
		m.failStart(fmt.Errorf("worker %d (pid %d) did not start: %s", p.Index, p.pid, words))
	default:
		m.gone(s, p, why, words)
	}
}

// lastWords returns how a process ended and its last output.
func lastWords(p *process, why tasktype.Reason, e Exit) string {
	signal := e.Signal
	if p.killed != "" {
		signal = 0 // our own
	}
	text := Describe(why, signal, e.Code)
	switch {
	case why == tasktype.ReasonBootFailed && p.words == "" && e.Signal == 0 && e.Code != crashCode:
		text = fmt.Sprintf(
			"boot failed: the program ended (exit status %d) before it reached "+
				"Start, AttachToServer or RunIfWorker, or in OnWorkerStart",
			e.Code,
		)
	case e.Known && e.Signal == 0 && e.Code == 0:
		text += " (exit status 0)"
	}
	for _, words := range []string{p.words, e.Stderr} {
		if words != "" {
			text += ": " + words
		}
	}
	return text
}

func (m *Machine) remove(s *slot, p *process) {
	switch p {
	case s.next:
		s.next, s.planned = nil, false
	case s.serving:
		s.serving = nil
	default:
		s.retiring = slices.DeleteFunc(s.retiring, func(q *process) bool { return q == p })
	}
}

func (m *Machine) event(kind tasktype.EventKind, p *process, why tasktype.Reason, text string) tasktype.Event {
	return tasktype.Event{Kind: kind, Reason: why, Worker: p.worker(), Generation: p.Generation, Text: text}
}

func (m *Machine) emit(kind tasktype.EventKind, p *process, why tasktype.Reason, text string) {
	m.do(Emit{m.event(kind, p, why, text)})
}

func (m *Machine) emitTask(kind tasktype.EventKind, p *process, why tasktype.Reason, ev Received) {
	e := m.event(kind, p, why, ev.Text)
	e.Tasks = []tasktype.RunningTask{ev.Running}
	if e.Text == "" {
		e.Text = "limit " + ev.Limit.String()
	}
	m.do(Emit{e})
}

func (m *Machine) emitPool(kind tasktype.EventKind, why tasktype.Reason, text string) {
	m.do(Emit{tasktype.Event{Kind: kind, Reason: why, Worker: tasktype.Worker{Index: -1}, Text: text}})
}
