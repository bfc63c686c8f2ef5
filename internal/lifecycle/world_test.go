package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// A world is a pool of imagined processes around a machine. Every step of it is random, within what
// the system and a worker can do, and after each the invariants of the machine are checked from
// outside: from the actions alone.
type world struct {
	rand    *rand.Rand
	m       *Machine
	now     time.Time
	limits  Limits
	procs   []*imagined // alive or being spawned
	serving []uint64    // by index: the generation that clients choose
	answers []Input     // to bind and refuse
	build   int
	reload  int // the build of the reload that runs; 0: none
	dropped map[int]bool
	doors   bool // closed
	over    bool
	failed  []time.Time // by index: when it failed last
	streak  []int       // by index: failures since it was ready
	traced  bool
	trace   []string // of what happened, for the report
	err     error
}

// An imagined process.
type imagined struct {
	Key
	build           int
	planned         bool // it replaces a worker that serves on
	up              bool // spawned was said
	ready, told     bool
	retires         bool // it was told to drain, or drains by itself
	drains, stopped bool // it obeys; it said that it accepts no more
	confirms        bool // it still owes accepting
	closed          bool // its channel
	killed          bool
	gone            bool
	stuck           bool      // its tasks never end
	since           time.Time // it drains
	exits           int       // events that said so
	finished        bool
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{rand: r, now: time.Unix(1e9, 0), build: 1, dropped: make(map[int]bool)}
	w.limits = Limits{
		Workers:      1 + r.IntN(3),
		MaxReplacing: 1 + r.IntN(2),
		StartTimeout: 10 * time.Second,
		DrainTimeout: 30 * time.Second,
		Tasks:        []string{"a"},
	}
	if r.IntN(4) == 0 {
		w.limits.DrainTimeout = -1
	}
	w.serving = make([]uint64, w.limits.Workers)
	w.failed = make([]time.Time, w.limits.Workers)
	w.streak = make([]int, w.limits.Workers)
	w.m = New(w.limits, r.Float64)
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) step(ev Input) {
	if w.err != nil || w.over {
		return
	}
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%s %T%+v", w.now.Sub(time.Unix(1e9, 0)), ev, ev))
	}
	for _, a := range w.m.Step(w.now, ev) {
		if w.traced {
			w.trace = append(w.trace, fmt.Sprintf("    %T%+v", a, a))
		}
		w.take(a)
	}
	w.check()
	if at := w.m.Wake(); isTick(ev) && !at.IsZero() && !at.After(w.now) {
		w.fail("a tick leaves a timer that is due")
	}
}

func isTick(ev Input) bool {
	_, ok := ev.(Tick)
	return ok
}

func (w *world) find(k Key) *imagined {
	for _, p := range w.procs {
		if p.Key == k {
			return p
		}
	}
	return nil
}

// take carries out an Action and checks that it was allowed.
func (w *world) take(a Action) {
	switch a := a.(type) {
	case Spawn:
		w.spawn(a)
	case Send:
		w.order(a)
	case Kill:
		p := w.find(a.Key)
		if p == nil || !p.up {
			w.fail("kill of %v, which is not there", a.Key)
			return
		}
		w.killed(p)
	case SetCurrent:
		p := w.find(a.Key)
		if p == nil || !p.ready {
			w.fail("%v is current and not ready", a.Key)
			return
		}
		w.serving[a.Index] = a.Generation
	case Finish:
		p := w.find(a.Key)
		if p == nil || p.finished || !slices.Contains(tasktype.Reasons(), a.Reason) {
			w.fail("finish of %v for reason %q", a.Key, a.Reason)
			return
		}
		p.finished = true
	case Emit:
		w.event(a.Event)
	case Bind:
		var err error
		if w.rand.IntN(2) == 0 {
			err = os.ErrPermission
		}
		w.answers = append(w.answers, Bound{a.Index, err})
	case Refuse:
		for _, p := range w.procs {
			if p.Index == a.Index && p.told && !p.stopped {
				w.fail("the backlog of %d is refused while %v accepts", a.Index, p.Key)
			}
		}
		w.answers = append(w.answers, Refused(a))
	case CloseDoors:
		w.doors = true
	case DropBuild:
		w.dropped[a.Build] = true
	case ReplyReload:
		if a.Build == w.reload {
			w.reload = 0
		}
	case Done:
		w.over = true
		if slices.ContainsFunc(w.procs, func(p *imagined) bool { return !p.gone }) {
			w.fail("done with processes left")
		}
	}
}

// killed: a process that drains has DrainTimeout for it, unless the pool ends or two more generations of
// its index want to drain too.
func (w *world) killed(p *imagined) {
	p.killed = true
	retiring := 0
	for _, q := range w.procs {
		if q.Index == p.Index && q.retires && !q.gone && !q.killed {
			retiring++
		}
	}
	if p.stopped && !w.doors && retiring == 0 && w.now.Before(p.since.Add(w.limits.DrainTimeout)) {
		w.fail("%v is killed after %s of its drain", p.Key, w.now.Sub(p.since))
	}
}

func (w *world) spawn(a Spawn) {
	if w.doors {
		w.fail("spawn after the doors closed")
	}
	if w.dropped[a.Build] {
		w.fail("spawn of the dropped build %d", a.Build)
	}
	planned := false
	for _, p := range w.procs {
		planned = planned || p.Index == a.Index && p.told && !p.retires && !p.gone
	}
	w.procs = append(w.procs, &imagined{Key: a.Key, build: a.Build, planned: planned, stuck: w.rand.IntN(5) == 0})
	if w.streak[a.Index] >= 2 && w.now.Before(w.failed[a.Index].Add(FirstDelay)) {
		w.fail("%d starts %s after failure %d in a row", a.Index, w.now.Sub(w.failed[a.Index]), w.streak[a.Index])
	}
}

// order: one listener has one acceptor, and no process retires before its successor is ready.
func (w *world) order(a Send) {
	p := w.find(a.Key)
	if p == nil || !p.up {
		w.fail("%s to %v, which is not there", a.Kind, a.Key)
		return
	}
	switch a.Kind {
	case control.KindAccept:
		for _, q := range w.procs {
			if q != p && q.Index == p.Index && q.told && !q.stopped {
				w.fail("%v is told to accept while %v does", p.Key, q.Key)
			}
		}
		if w.serving[p.Index] != p.Generation || !p.ready {
			w.fail("%v is told to accept before it is current and ready", p.Key)
		}
		p.told, p.confirms = true, true
	case control.KindDrain:
		p.retires = true
		if !a.End && w.rand.IntN(8) > 0 {
			p.drains = true
		} else if a.End {
			p.drains = w.rand.IntN(8) > 0
		}
		if a.End != w.doors {
			w.fail("drain with End %v while the doors are closed: %v", a.End, w.doors)
		}
	}
}

func (w *world) event(e tasktype.Event) {
	if !slices.Contains(tasktype.Reasons(), e.Reason) {
		w.fail("event %s has the reason %q", e.Kind, e.Reason)
	}
	p := w.find(Key{max(e.Worker.Index, 0), e.Generation})
	switch e.Kind {
	case tasktype.EventReady:
		w.streak[e.Worker.Index] = 0
	case tasktype.EventSpawnFailed:
		w.failure(e.Worker.Index)
	case tasktype.EventReloadAborted: // old code may be tried at once
		clear(w.streak)
	case tasktype.EventExited:
		p.exits++
		switch {
		case p.retires:
		case e.Reason == tasktype.ReasonReloadAborted || e.Reason == tasktype.ReasonSocketLost: // a spawn that was due, done again
			w.streak[e.Worker.Index] = 0
		default:
			w.failure(e.Worker.Index)
		}
	case tasktype.EventDraining:
		p.since = w.now
		if p.confirms { // its successor takes the place of a start that succeeded
			w.streak[e.Worker.Index] = 0
		}
		planned := e.Reason == tasktype.ReasonRecycledTasks || e.Reason == tasktype.ReasonRecycledAge ||
			e.Reason == tasktype.ReasonReloaded
		if planned && w.serving[e.Worker.Index] == p.Generation {
			w.fail("%v retires for %s and has no successor", p.Key, e.Reason)
		}
	}
}

func (w *world) failure(index int) {
	w.failed[index] = w.now
	w.streak[index]++
}

// check looks at what must hold between steps.
func (w *world) check() {
	replacing := 0
	for _, p := range w.procs {
		if p.planned && !(p.told && !p.confirms) && !p.killed && !p.retires && !p.gone {
			replacing++
		}
	}
	if replacing > w.limits.MaxReplacing {
		w.fail("%d planned replacements at once, %d allowed", replacing, w.limits.MaxReplacing)
	}
	if at := w.m.Wake(); !at.IsZero() && w.over {
		w.fail("a timer is set after the end")
	}
}

// end shuts the pool down and lets everything happen that then can. Impatient: it is cut.
func (w *world) end() {
	w.step(ShutdownWanted{})
	impatient := w.limits.DrainTimeout < 0 || w.rand.IntN(2) == 0
	for i := 0; !w.over && w.err == nil; i++ {
		if i == 20 && impatient {
			w.step(CutWanted{})
		}
		if i > 2000 {
			w.fail("the shutdown does not end: %d processes, phase %d", len(w.procs), w.m.phase)
		}
		w.act()
	}
}
