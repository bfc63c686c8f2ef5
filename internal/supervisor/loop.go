package supervisor

import (
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
)

// refuseWithin bounds how long the callers in a backlog are given to send what is refused.
const refuseWithin = 100 * time.Millisecond

// run is the one goroutine in which the machine lives.
func (s *Supervisor) run() {
	defer close(s.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !s.finished {
		arm(timer, s.machine.wake())
		select {
		case ev := <-s.inbox:
			s.handle(ev)
		case name := <-s.files.gone:
			s.fileGone(name)
		case <-timer.C:
			s.handle(tick{})
		}
	}
	s.wait.Wait()
	s.release()
}

func arm(timer *time.Timer, at time.Time) {
	if at.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(at))
}

func (s *Supervisor) handle(ev event) {
	s.todo = append(s.todo, ev)
	for len(s.todo) > 0 {
		ev := s.todo[0]
		s.todo = s.todo[1:]
		for _, a := range s.machine.step(time.Now(), s.notice(ev)) {
			s.carryOut(a)
		}
	}
}

// notice does what an event asks of this layer before the machine sees it.
func (s *Supervisor) notice(ev event) event {
	switch ev := ev.(type) {
	case reloadCall:
		s.executable[ev.build] = ev.exe
		s.reloads[ev.build] = ev.reply
		return reloadWanted{ev.build}
	case spawnFailed:
		s.end(ev.key, sharedstate.End{How: uint32(SpawnFailed)})
	case exited:
		n, ok := sys.OOMKills()
		ev.oom = ok && n > s.oomKills
		s.oomKills = max(n, s.oomKills)
		return ev
	}
	return ev
}

func (s *Supervisor) carryOut(a action) {
	switch a := a.(type) {
	case spawn:
		s.spawn(a)
	case send:
		// An error shows as the end of the channel, which is an event of its own.
		_ = s.children[a.key].conn.Send(a.Message)
	case kill:
		s.children[a.key].proc.KillGroup()
	case setCurrent:
		s.table.SetCurrent(a.index, s.children[a.key].row)
	case finish:
		s.end(a.key, a.End)
	case show:
		s.table.SetRestarting(a.index, a.degraded, a.restarts)
	case emit:
		s.events.put(a.Event)
	case bind:
		s.todo = append(s.todo, bound{a.index, s.rebind(a.index)})
	case closeDoors:
		s.table.SetClosed()
		s.files.unlink()
	case refuse:
		s.wait.Go(func() {
			s.env.refuse(s.listeners[a.index], a.index, s.cfg.MaxPackageSize, refuseWithin)
			s.post(refused(a))
		})
	case dropBuild:
		s.executable[a.build].Close()
		delete(s.executable, a.build)
	case replyStart:
		s.started <- a.err
	case replyReload:
		s.reloads[a.build] <- a.err
		delete(s.reloads, a.build)
	case done:
		s.finish(a.lost)
	}
}

// end writes the end record of a process and gives its row back.
func (s *Supervisor) end(k key, e sharedstate.End) {
	if c, ok := s.children[k]; ok {
		c.row.Finish(e)
		c.row.Free()
		delete(s.children, k)
	}
}

// finish notes how old the lost tasks were.
func (s *Supervisor) finish(lost []Lost) {
	now := sys.Now()
	for i := range lost {
		lost[i].Age = time.Duration(now - lost[i].Started)
	}
	s.lost, s.finished = lost, true
}

// fileGone: somebody removed one of our files.
func (s *Supervisor) fileGone(name string) {
	index, ok := s.files.index(name)
	switch {
	case !ok:
	case index >= 0:
		s.handle(socketGone{index})
	case !s.machine.closing():
		s.pool.rebind()
	}
}

// rebind binds the socket of an index anew. The old listener stays open in the worker that has it.
func (s *Supervisor) rebind(index int) error {
	l, err := s.files.listen(SocketPath(s.cfg.TempDir, s.cfg.ServerName, index))
	if err != nil {
		return err
	}
	s.listeners[index].Close()
	s.listeners[index] = l
	return nil
}
