package supervisor

import (
	"time"

	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// RefuseWithin bounds the refusal of the calls in a backlog.
const RefuseWithin = 100 * time.Millisecond

// run is the goroutine that owns the machine.
func (s *Supervisor) run() {
	defer close(s.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !s.finished {
		arm(timer, s.machine.Wake())
		select {
		case ev := <-s.inbox:
			s.handle(ev)
		case name := <-s.files.gone:
			s.fileGone(name)
		case <-timer.C:
			s.handle(lifecycle.Tick{})
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

func (s *Supervisor) handle(ev lifecycle.Input) {
	s.todo = append(s.todo, ev)
	for len(s.todo) > 0 {
		ev := s.todo[0]
		s.todo = s.todo[1:]
		for _, a := range s.machine.Step(time.Now(), s.notice(ev)) {
			s.carryOut(a)
		}
	}
}

// notice does what an input requires here before the machine sees it.
func (s *Supervisor) notice(ev lifecycle.Input) lifecycle.Input {
	switch ev := ev.(type) {
	case reloadCall:
		s.executable[ev.build] = ev.exe
		s.reloads[ev.build] = ev.reply
		return lifecycle.ReloadWanted{Build: ev.build}
	case lifecycle.SpawnFailed:
		s.end(ev.Key, sharedstate.End{Reason: tasktype.ReasonSpawnFailed})
	case lifecycle.Exited:
		n, ok := memstat.OOMKills()
		ev.OOM = ok && n > s.oomKills
		s.oomKills = max(n, s.oomKills)
		return ev
	}
	return ev
}

func (s *Supervisor) carryOut(a lifecycle.Action) {
	switch a := a.(type) {
	case lifecycle.Spawn:
		s.spawn(a)
	case lifecycle.Send:
		// After an error the channel ends, which is an input of its own.
		_ = s.children[a.Key].conn.Send(a.Message)
	case lifecycle.Kill:
		s.children[a.Key].proc.KillGroup()
	case lifecycle.SetCurrent:
		s.table.SetCurrent(a.Index, s.children[a.Key].row)
	case lifecycle.Finish:
		s.end(a.Key, sharedstate.End{Reason: a.Reason, Signal: a.Signal, Code: a.Code})
	case lifecycle.Show:
		s.table.SetRestarting(a.Index, a.Degraded, a.Restarts)
	case lifecycle.Emit:
		s.events.put(a.Event)
	case lifecycle.Bind:
		s.todo = append(s.todo, lifecycle.Bound{Index: a.Index, Err: s.rebind(a.Index)})
	case lifecycle.CloseDoors:
		s.table.SetClosed()
		s.files.unlink()
	case lifecycle.Refuse:
		s.wait.Go(func() {
			s.env.refuse(s.listeners[a.Index], a.Index, s.cfg.MaxPackageSize, RefuseWithin)
			s.post(lifecycle.Refused(a))
		})
	case lifecycle.DropBuild:
		s.executable[a.Build].Close()
		delete(s.executable, a.Build)
	case lifecycle.ReplyStart:
		s.started <- a.Err
	case lifecycle.ReplyReload:
		s.reloads[a.Build] <- a.Err
		delete(s.reloads, a.Build)
	case lifecycle.Done:
		s.lost, s.finished = a.Lost, true
	}
}

// end stores how a process ended and frees its row.
func (s *Supervisor) end(k lifecycle.Key, e sharedstate.End) {
	if c, ok := s.children[k]; ok {
		c.row.Finish(e)
		c.row.Free()
		delete(s.children, k)
	}
}

// fileGone handles the removal of one of the pool's files.
func (s *Supervisor) fileGone(name string) {
	index, ok := s.files.index(name)
	switch {
	case !ok:
	case index >= 0:
		s.handle(lifecycle.SocketGone{Index: index})
	case !s.machine.Closing():
		s.pool.rebind()
	}
}

// rebind binds the socket of an index again. The old listener stays open in the worker that has it.
func (s *Supervisor) rebind(index int) error {
	l, err := s.files.listen(SocketPath(s.cfg.TempDir, s.cfg.ServerName, index))
	if err != nil {
		return err
	}
	s.listeners[index].Close()
	s.listeners[index] = l
	return nil
}

// Describe returns in words how a worker ended.
func Describe(e sharedstate.End) string { return lifecycle.Describe(e.Reason, e.Signal, e.Code) }
