package supervisor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
)

// A world is a pool of imagined processes around a machine. Every step of it is random, within what
// the system and a worker can do, and after each the invariants of the machine are checked from
// outside: from the actions alone.
type world struct {
	rand    *rand.Rand
	m       *machine
	now     time.Time
	limits  limits
	procs   []*imagined // alive or being spawned
	serving []uint64    // by index: the generation that clients choose
	answers []event     // to bind and refuse
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
	key
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
	w.limits = limits{workers: 1 + r.IntN(3), maxReplacing: 1 + r.IntN(2), startTimeout: 10 * time.Second, drainTimeout: 30 * time.Second, tasks: []string{"a"}}
	if r.IntN(4) == 0 {
		w.limits.drainTimeout = -1
	}
	w.serving = make([]uint64, w.limits.workers)
	w.failed = make([]time.Time, w.limits.workers)
	w.streak = make([]int, w.limits.workers)
	w.m = newMachine(w.limits, r.Float64)
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) step(ev event) {
	if w.err != nil || w.over {
		return
	}
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%s %T%+v", w.now.Sub(time.Unix(1e9, 0)), ev, ev))
	}
	for _, a := range w.m.step(w.now, ev) {
		if w.traced {
			w.trace = append(w.trace, fmt.Sprintf("    %T%+v", a, a))
		}
		w.take(a)
	}
	w.check()
	if at := w.m.wake(); isTick(ev) && !at.IsZero() && !at.After(w.now) {
		w.fail("a tick leaves a timer that is due")
	}
}

func isTick(ev event) bool {
	_, ok := ev.(tick)
	return ok
}

func (w *world) find(k key) *imagined {
	for _, p := range w.procs {
		if p.key == k {
			return p
		}
	}
	return nil
}

// take carries out an action and checks that it was allowed.
func (w *world) take(a action) {
	switch a := a.(type) {
	case spawn:
		w.spawn(a)
	case send:
		w.order(a)
	case kill:
		p := w.find(a.key)
		if p == nil || !p.up {
			w.fail("kill of %v, which is not there", a.key)
			return
		}
		w.killed(p)
	case setCurrent:
		p := w.find(a.key)
		if p == nil || !p.ready {
			w.fail("%v is current and not ready", a.key)
			return
		}
		w.serving[a.index] = a.generation
	case finish:
		p := w.find(a.key)
		if p == nil || p.finished || Reason(a.How) == Unknown || Reason(a.How) >= reasons {
			w.fail("finish of %v for reason %d", a.key, a.How)
			return
		}
		p.finished = true
	case emit:
		w.event(a.Event)
	case bind:
		var err error
		if w.rand.IntN(2) == 0 {
			err = os.ErrPermission
		}
		w.answers = append(w.answers, bound{a.index, err})
	case refuse:
		for _, p := range w.procs {
			if p.index == a.index && p.told && !p.stopped {
				w.fail("the backlog of %d is refused while %v accepts", a.index, p.key)
			}
		}
		w.answers = append(w.answers, refused(a))
	case closeDoors:
		w.doors = true
	case dropBuild:
		w.dropped[a.build] = true
	case replyReload:
		if a.build == w.reload {
			w.reload = 0
		}
	case done:
		w.over = true
		if slices.ContainsFunc(w.procs, func(p *imagined) bool { return !p.gone }) {
			w.fail("done with processes left")
		}
	}
}

// killed: whoever drains has DrainTimeout for it, unless the pool ends or two more generations of
// its index want to drain too.
func (w *world) killed(p *imagined) {
	p.killed = true
	retiring := 0
	for _, q := range w.procs {
		if q.index == p.index && q.retires && !q.gone && !q.killed {
			retiring++
		}
	}
	if p.stopped && !w.doors && retiring == 0 && w.now.Before(p.since.Add(w.limits.drainTimeout)) {
		w.fail("%v is killed after %s of its drain", p.key, w.now.Sub(p.since))
	}
}

func (w *world) spawn(a spawn) {
	if w.doors {
		w.fail("spawn after the doors closed")
	}
	if w.dropped[a.build] {
		w.fail("spawn of the dropped build %d", a.build)
	}
	planned := false
	for _, p := range w.procs {
		planned = planned || p.index == a.index && p.told && !p.retires && !p.gone
	}
	w.procs = append(w.procs, &imagined{key: a.key, build: a.build, planned: planned, stuck: w.rand.IntN(5) == 0})
	if w.streak[a.index] >= 2 && w.now.Before(w.failed[a.index].Add(firstDelay)) {
		w.fail("%d starts %s after failure %d in a row", a.index, w.now.Sub(w.failed[a.index]), w.streak[a.index])
	}
}

// order: one listener has one acceptor, and nobody retires before its successor is ready.
func (w *world) order(a send) {
	p := w.find(a.key)
	if p == nil || !p.up {
		w.fail("%s to %v, which is not there", a.Kind, a.key)
		return
	}
	switch a.Kind {
	case control.KindAccept:
		for _, q := range w.procs {
			if q != p && q.index == p.index && q.told && !q.stopped {
				w.fail("%v is told to accept while %v does", p.key, q.key)
			}
		}
		if w.serving[p.index] != p.generation || !p.ready {
			w.fail("%v is told to accept before it is current and ready", p.key)
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

func (w *world) event(e Event) {
	if e.Reason == Unknown || e.Reason >= reasons {
		w.fail("event %s has the reason %d", e.Kind, e.Reason)
	}
	p := w.find(key{max(e.Index, 0), e.Generation})
	switch e.Kind {
	case EventReady:
		w.streak[e.Index] = 0
	case EventSpawnFailed:
		w.failure(e.Index)
	case EventReloadAborted: // old code may be tried at once
		clear(w.streak)
	case EventExited:
		p.exits++
		switch {
		case p.retires:
		case e.Reason == ReloadAborted || e.Reason == SocketLost: // a spawn that was due, done again
			w.streak[e.Index] = 0
		default:
			w.failure(e.Index)
		}
	case EventDraining:
		p.since = w.now
		if p.confirms { // its successor takes the place of a start that succeeded
			w.streak[e.Index] = 0
		}
		planned := e.Reason == RecycledTasks || e.Reason == RecycledAge || e.Reason == Reloaded
		if planned && w.serving[e.Index] == p.generation {
			w.fail("%v retires for %s and has no successor", p.key, e.Reason)
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
	if replacing > w.limits.maxReplacing {
		w.fail("%d planned replacements at once, %d allowed", replacing, w.limits.maxReplacing)
	}
	if at := w.m.wake(); !at.IsZero() && w.over {
		w.fail("a timer is set after the end")
	}
}

// end shuts the pool down and lets everything happen that then can. Impatient: somebody cuts it.
func (w *world) end() {
	w.step(shutdownWanted{})
	impatient := w.limits.drainTimeout < 0 || w.rand.IntN(2) == 0
	for i := 0; !w.over && w.err == nil; i++ {
		if i == 20 && impatient {
			w.step(cutWanted{})
		}
		if i > 2000 {
			w.fail("the shutdown does not end: %d processes, phase %d", len(w.procs), w.m.phase)
		}
		w.act()
	}
}
