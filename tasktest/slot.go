package tasktest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/worker"
)

// A slot is one worker index. Its goroutine replaces the worker when it dies or must go.
type slot struct {
	p        *Pool
	index    int
	listener *net.UnixListener
	restarts uint64
}

// A life is one worker, from its start to its end.
type life struct {
	server     *worker.Server
	row        sharedstate.ParentRow
	generation uint64
	why        task.Reason      // the worker was started
	requests   chan task.Reason // why it asks for a successor
	served     chan error       // what Serve returned
}

// run keeps a worker in the slot until the pool ends.
func (s *slot) run(w *life) {
	for w != nil {
		select {
		case <-w.server.Killed():
			s.finishKilled(w, task.ReasonKilled)
			w = s.restart(task.ReasonKilled)
		case why := <-w.requests:
			w = s.replace(w, why)
		case <-s.p.closing:
			s.leave(w)
			return
		}
	}
	worker.Refuse(s.listener, s.index, s.p.cfg.MaxPackageSize, supervisor.RefuseWithin)
}

// replace gives w a successor and returns the worker that serves then. A worker that is recycled
// serves until the successor is ready, and serves on if it does not start.
func (s *slot) replace(w *life, why task.Reason) *life {
	if why == task.ReasonHardLimit || why == task.ReasonSuspect {
		s.retire(w, why)
		return s.restart(why)
	}
	for failed := 0; ; failed++ {
		next, err := s.boot(why)
		switch {
		case err == nil:
			s.show(next)
			s.retire(w, why)
			s.serve(next)
			return next
		case !s.pause(failed, w.server.Killed()):
			return w
		}
	}
}

// restart tries until a worker starts, and returns it. It returns nil if the pool ends.
func (s *slot) restart(why task.Reason) *life {
	for failed := 0; ; failed++ {
		s.restarts++
		s.p.table.SetRestarting(s.index, failed >= lifecycle.DegradedAt, s.restarts)
		w, err := s.boot(why)
		switch {
		case err == nil:
			s.p.table.SetRestarting(s.index, false, s.restarts)
			s.enter(w)
			return w
		case !s.pause(failed, nil):
			return nil
		}
	}
}

// pause waits before the next try of a start. It returns false if the pool ends or early is closed.
func (s *slot) pause(failed int, early <-chan struct{}) bool {
	timer := time.NewTimer(min(lifecycle.FirstDelay<<min(failed, 10), lifecycle.MaxDelay))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-early:
	case <-s.p.closing:
	}
	return false
}

// boot makes a worker that is ready to serve.
func (s *slot) boot(why task.Reason) (*life, error) {
	w := &life{
		generation: s.p.generation.Add(1),
		why:        why,
		requests:   make(chan task.Reason, 8),
		served:     make(chan error, 1),
	}
	var err error
	if w.row, err = s.p.table.Allocate(s.index, w.generation); err != nil {
		s.p.events.worker(
			task.EventSpawnFailed,
			task.ReasonSpawnFailed,
			s.index,
			w.generation,
			task.Event{Text: err.Error()},
		)
		return nil, err
	}
	w.row.SetPID(os.Getpid())
	w.server = worker.New(s.config(w))
	s.p.events.worker(task.EventStarted, why, s.index, w.generation, task.Event{})
	if err := s.onWorkerStart(); err != nil {
		w.row.Finish(sharedstate.End{Reason: task.ReasonBootFailed, Code: 1})
		w.row.Free()
		s.p.events.worker(
			task.EventExited,
			task.ReasonBootFailed,
			s.index,
			w.generation,
			task.Event{ExitCode: 1, Text: err.Error()},
		)
		return nil, err
	}
	return w, nil
}

func (s *slot) config(w *life) worker.Config {
	cfg := &s.p.cfg
	request := func(why task.Reason) {
		select {
		case w.requests <- why:
		default: // enough are waiting
		}
	}
	return worker.Config{
		Index:          s.index,
		Generation:     w.generation,
		Row:            s.p.table.WorkerRow(w.row.Number()),
		Table:          s.p.table.Table,
		Listener:       s.listener,
		MaxPackageSize: cfg.MaxPackageSize,
		FrameTimeout:   cfg.FrameTimeout,
		DrainGrace:     cfg.DrainGrace,
		SoftTimeLimit:  cfg.SoftTimeLimit,
		TimeLimit:      cfg.TimeLimit,
		Recycle:        worker.Recycle{MaxTasks: cfg.MaxTasksPerWorker, MaxAge: cfg.MaxWorkerAge},
		Lookup:         s.p.lookup,
		OnException:    s.onException(),
		Logger:         s.p.log,
		OnSoftLimit: func(o worker.Overdue) {
			s.p.events.worker(task.EventSoftLimit, task.ReasonSoftLimit, s.index, w.generation,
				task.Event{Text: string(o.Dump), Tasks: []task.RunningTask{{ID: o.TaskID, Name: o.Task, Age: o.Limit}}})
		},
		OnHardLimit: func(o worker.Overdue) {
			s.p.events.worker(
				task.EventHardLimit,
				task.ReasonHardLimit,
				s.index,
				w.generation,
				task.Event{
					Text:  "limit " + o.Limit.String(),
					Tasks: []task.RunningTask{{ID: o.TaskID, Name: o.Task, Age: o.Limit}},
				},
			)
			request(task.ReasonHardLimit)
		},
		OnSuspect: func(last error) {
			s.p.events.worker(
				task.EventSuspect,
				task.ReasonSuspect,
				s.index,
				w.generation,
				task.Event{Text: last.Error()},
			)
			request(task.ReasonSuspect)
		},
		OnRecycle: request,
		Fault:     s.p.faults.take,
	}
}

func (s *slot) onWorkerStart() (err error) {
	if err := s.p.faults.start(); err != nil {
		return err
	}
	if s.p.cfg.OnWorkerStart == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("OnWorkerStart panicked: %v\n%s", v, debug.Stack())
		}
	}()
	if err := s.p.cfg.OnWorkerStart(context.Background(), task.Worker{Index: s.index, PID: os.Getpid()}); err != nil {
		return fmt.Errorf("OnWorkerStart: %w", err)
	}
	return nil
}

func (s *slot) onException() func(worker.Failure) {
	if s.p.cfg.OnException == nil {
		return nil
	}
	return func(f worker.Failure) {
		s.p.cfg.OnException(&task.Error{
			Status:      task.ErrTask,
			Delivery:    task.Ran,
			TaskID:      f.TaskID,
			WorkerIndex: s.index,
			PID:         os.Getpid(),
			Message:     f.Text,
			Err:         f.Err,
		}, s.index)
	}
}

// enter makes w the worker of a slot that has none.
func (s *slot) enter(w *life) {
	s.show(w)
	s.serve(w)
}

// show makes clients choose w.
func (s *slot) show(w *life) {
	w.server.Ready()
	s.p.table.SetCurrent(s.index, w.row)
}

// serve makes w accept connections. Its predecessor has stopped.
func (s *slot) serve(w *life) {
	// It fails only for a closed listener.
	_ = s.listener.SetDeadline(time.Time{})
	go func() { w.served <- w.server.Serve() }()
	s.p.events.worker(task.EventReady, w.why, s.index, w.generation, task.Event{})
}

// retire makes w stop accepting, and drains it in the background.
func (s *slot) retire(w *life, why task.Reason) {
	within := s.p.cfg.DrainTimeout
	if why == task.ReasonHardLimit && within < 0 {
		within = lifecycle.StuckTimeout
	}
	s.p.events.worker(task.EventDraining, why, s.index, w.generation, task.Event{})
	<-w.server.Drain(within, false)
	s.p.wait.Go(func() { s.await(w, why) })
}

// leave ends the slot's last worker and refuses the calls in the backlog.
func (s *slot) leave(w *life) {
	s.p.events.worker(task.EventDraining, task.ReasonShutdown, s.index, w.generation, task.Event{})
	w.server.Drain(s.p.cfg.DrainTimeout, true)
	s.await(w, task.ReasonShutdown)
}

// await waits until a worker that drains has ended: by itself, at its limit, or at the end of
// Shutdown's ctx.
func (s *slot) await(w *life, why task.Reason) {
	var err error
	select {
	case err = <-w.served:
	case <-w.server.Killed():
		s.finishKilled(w, task.ReasonKilled)
		return
	case <-s.p.cut:
		w.server.Cut(worker.ErrShutdown)
		w.server.Drain(lifecycle.CutGrace, why == task.ReasonShutdown)
		err = <-w.served
	}
	if err == nil {
		s.finish(w, why, sharedstate.End{})
		w.row.Free()
		return
	}
	if why != task.ReasonHardLimit && why != task.ReasonShutdown {
		why = task.ReasonDrainTimeout
	}
	// Its tasks run on and use the row, so the row is never freed.
	w.server.Kill()
	s.finish(w, why, sharedstate.End{Signal: int(syscall.SIGKILL)})
}

// finishKilled ends the accounts of a worker that was killed, and frees its row when its tasks have
// ended.
func (s *slot) finishKilled(w *life, why task.Reason) {
	<-w.server.Drain(-1, false)
	s.finish(w, why, sharedstate.End{Signal: int(syscall.SIGKILL)})
	go func() {
		<-w.served
		w.row.Free()
	}()
}

func (s *slot) finish(w *life, why task.Reason, e sharedstate.End) {
	tasks := w.row.Tasks()
	e.Reason = why
	w.row.Finish(e)
	now := sys.Now()
	event := task.Event{Worker: task.Worker{Index: s.index, PID: os.Getpid()}, Signal: e.Signal}
	for _, t := range tasks {
		running := task.RunningTask{ID: t.TaskID, Name: t.Name, Age: time.Duration(now - t.Started)}
		event.Tasks = append(event.Tasks, running)
		if why == task.ReasonShutdown {
			s.p.loses(lifecycle.Lost{Worker: event.Worker, Task: running})
		}
	}
	s.p.events.worker(task.EventExited, why, s.index, w.generation, event)
}

func (p *Pool) loses(l lifecycle.Lost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, l)
}
