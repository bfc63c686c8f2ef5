package lifecycle

import (
	"errors"
	"slices"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// exit ends a process; it is gone from the world before anything else happens.
func (w *world) exit(p *imagined, e Exit) {
	e.Known, p.stopped, p.gone = true, true, true
	w.step(Exited{p.Key, e})
	if w.err == nil && (!p.finished || p.exits != 1) {
		w.fail("%v exited: finished %v, %d events", p.Key, p.finished, p.exits)
	}
	w.remove(p)
}

func (w *world) remove(p *imagined) {
	w.procs = slices.DeleteFunc(w.procs, func(q *imagined) bool { return q == p })
}

// act lets one random thing happen.
func (w *world) act() {
	if len(w.answers) > 0 && w.rand.IntN(2) == 0 {
		ev := w.answers[0]
		w.answers = w.answers[1:]
		w.step(ev)
		return
	}
	switch n := w.rand.IntN(40); {
	case n < 30 && len(w.procs) > 0:
		w.live(w.procs[w.rand.IntN(len(w.procs))])
	case n < 36:
		w.pass()
	case n == 36 && w.reload == 0:
		w.build++
		w.reload = w.build
		clear(w.streak) // the new code may be tried at once
		w.step(ReloadWanted{w.build})
	case n == 37 && w.reload != 0:
		w.step(ReloadCancelled{w.reload, errors.New("cancelled")})
	case n == 38:
		w.step(SocketGone{w.rand.IntN(w.limits.Workers)})
	}
}

// pass lets the time come that the machine waits for, or some of it.
func (w *world) pass() {
	at := w.m.Wake()
	if at.IsZero() {
		w.now = w.now.Add(time.Second)
		return
	}
	if at.After(w.now) && w.rand.IntN(3) == 0 {
		w.now = w.now.Add(at.Sub(w.now) / 2)
		return
	}
	if at.After(w.now) {
		w.now = at
	}
	w.step(Tick{})
}

// live lets one process do one thing that it can do.
func (w *world) live(p *imagined) {
	chance := w.rand.IntN(100)
	switch {
	case !p.up && chance < 5:
		p.gone = true
		w.step(SpawnFailed{p.Key, errors.New("no more processes")})
		w.remove(p)
	case !p.up:
		p.up = true
		w.step(Spawned{p.Key, int(p.Generation)})
	case p.killed:
		w.exit(p, Exit{Signal: 9})
	case chance < 3 && !w.doors: // at the end no process dies by chance: the machine has to see to it
		w.exit(p, Exit{Signal: w.rand.IntN(2) * 11, Code: 1})
	case chance < 4 && !p.closed && !w.doors:
		p.closed = true
		w.step(ChannelClosed{p.Key})
	case p.closed:
	case !p.ready:
		w.boot(p, chance)
	case p.confirms && !p.drains:
		p.confirms = false
		w.say(p, control.Message{Kind: control.KindAccepting})
	case p.drains && !p.stopped:
		p.stopped = true
		w.say(p, control.Message{Kind: control.KindStopped})
	case p.stopped && !p.stuck && chance < 50:
		w.exit(p, Exit{Code: w.rand.IntN(10) / 9})
	case p.told && !p.drains:
		w.request(p, chance)
	}
}

func (w *world) boot(p *imagined, chance int) {
	switch {
	case chance < 10 && !w.doors:
		w.say(p, control.Message{Kind: control.KindBootError, Text: "no"})
		w.exit(p, Exit{Code: 1})
	case chance < 12:
		w.say(p, control.Message{Kind: control.KindReady}) // without its task
	case chance < 80:
		p.ready = true
		w.say(p, control.Message{Kind: control.KindReady, Names: []string{"a"}})
	}
}

func (w *world) request(p *imagined, chance int) {
	switch {
	case chance < 20:
		w.say(p, control.Message{Kind: control.KindRecycle, Reason: string(tasktype.ReasonRecycledAge)})
	case chance < 24:
		p.drains, p.retires = true, true
		w.say(p, control.Message{Kind: control.KindDraining, Reason: "signal"})
	case chance < 27:
		w.say(p, control.Message{Kind: control.KindHardLimit})
	case chance < 30:
		w.say(p, control.Message{Kind: control.KindSuspect})
	}
}

func (w *world) say(p *imagined, m control.Message) { w.step(Received{Key: p.Key, Message: m}) }
