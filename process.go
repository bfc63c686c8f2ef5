package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/worker"
)

// Exit codes of a worker process.
const (
	exitDrained  = 0
	exitNoBoot   = 1 // it could not start; it sent the reason to the parent
	exitUnclean  = control.ExitUnclean
	exitSignaled = 4 // a second signal ended it
)

const (
	bootGrace   = time.Second      // how long OnWorkerStart may go on once the parent is gone
	orphanLimit = 30 * time.Second // bounds the drain if the parent is gone and a task is past its hard limit
)

// A process holds the state of a worker process, which is this one.
type process struct {
	cfg      Config
	handover control.Handover
	parent   *control.Conn
	messages chan control.Message
	gone     chan struct{} // closed when the parent is gone
	server   *worker.Server
	signals  chan os.Signal
	serving  bool
	served   chan error // what Serve returned
	share    worker.Processors
	reserve  *heapReserve
}

// runWorker runs this process as a worker and returns its exit code.
func runWorker(cfg Config) int {
	parent, err := openParent()
	if err != nil {
		fmt.Fprintln(os.Stderr, "task: worker:", err)
		return exitNoBoot
	}
	p := &process{
		cfg: cfg, parent: parent, messages: make(chan control.Message), gone: make(chan struct{}),
		signals: make(chan os.Signal, 4), served: make(chan error, 1),
	}
	signal.Notify(p.signals, syscall.SIGTERM, syscall.SIGINT)
	// With Notify, a write to the output of a parent that died fails and does not kill this
	// process. Child processes do not inherit this, as they would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := p.boot(); err != nil {
		// An error here means that the parent is gone.
		_ = parent.Send(control.Message{Kind: control.KindBootError, Text: err.Error()})
		return exitNoBoot
	}
	return p.serve()
}

func openParent() (*control.Conn, error) {
	f := os.NewFile(control.FDControl, "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("control channel: %w", err)
	}
	return control.NewConn(c), nil
}

// boot takes the handover, prepares the process and runs OnWorkerStart.
func (p *process) boot() error {
	m, err := p.parent.Receive()
	if err != nil {
		return fmt.Errorf("no handover: %w", err)
	}
	if m.Kind != control.KindHandover || m.Handover == nil || m.Handover.Version != control.Version {
		return fmt.Errorf("the handover is of another version than %d", control.Version)
	}
	p.handover = *m.Handover
	go p.receive()
	os.Args[0] = p.handover.Arg0
	sys.SetTitle(p.handover.Title)
	p.share, p.reserve = limitResources(p.handover.Settings)

	table, err := sharedstate.Open(os.NewFile(control.FDTable, "table"), true)
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	listener, err := openListener()
	if err != nil {
		return err
	}
	p.server = worker.New(p.serverConfig(table, listener))
	return p.onWorkerStart()
}

func openListener() (*net.UnixListener, error) {
	f := os.NewFile(control.FDListener, "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listener: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("listener: it is a %T", l)
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}

func (p *process) serverConfig(table *sharedstate.Table, listener *net.UnixListener) worker.Config {
	h := &p.handover
	return worker.Config{
		Index:          h.Index,
		Generation:     h.Generation,
		Row:            table.WorkerRow(h.Row),
		Table:          table,
		Listener:       listener,
		MaxPackageSize: h.MaxPackageSize,
		FrameTimeout:   h.FrameTimeout,
		DrainGrace:     h.DrainGrace,
		SoftTimeLimit:  h.SoftTimeLimit,
		TimeLimit:      h.TimeLimit,
		Lookup:         registry.Lookup(h.Allowed),
		OnException:    p.onException(),
		Logger:         slog.Default(),
		OnSoftLimit: func(o worker.Overdue) {
			// Dumps are large and come many at once. A dump that the parent does not read is
			// dropped.
			_ = p.parent.Send(overdue(control.KindSoftLimit, o))
		},
		OnHardLimit: func(o worker.Overdue) {
			if !p.tell(overdue(control.KindHardLimit, o)) {
				p.server.Drain(orphanLimit, false)
			}
		},
		OnDrift: func(records, running int) {
			p.tell(
				control.Message{
					Kind: control.KindDrift,
					Text: fmt.Sprintf("%d tasks in flight, %d counted as running", records, running),
				},
			)
		},
		OnSuspect:  func(last error) { p.tell(control.Message{Kind: control.KindSuspect, Text: last.Error()}) },
		Processors: p.share,
		OnLarge:    p.reserve.enlarge,
		Recycle:    worker.Recycle{MaxTasks: h.MaxTasksPerWorker, MaxAge: h.MaxWorkerAge, MaxMemory: h.MaxWorkerMemory},
		OnRecycle:  func(r Reason) { p.tell(control.Message{Kind: control.KindRecycle, Reason: string(r)}) },
	}
}

func overdue(kind control.Kind, o worker.Overdue) control.Message {
	return control.Message{
		Kind:    kind,
		TaskID:  o.TaskID,
		Task:    o.Task,
		Limit:   o.Limit,
		Started: o.Started,
		Text:    string(o.Dump),
	}
}

// tell sends m. While the parent is stopped, it waits. It returns false if the parent is gone; then
// the end of the channel ends this process.
func (p *process) tell(m control.Message) bool {
	for {
		err := p.parent.Send(m)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err == nil
		}
	}
}

func (p *process) onException() func(worker.Failure) {
	if p.cfg.OnException == nil {
		return nil
	}
	return func(f worker.Failure) {
		p.cfg.OnException(&Error{
			Status:      ErrTask,
			Delivery:    Ran,
			TaskID:      f.TaskID,
			WorkerIndex: p.handover.Index,
			PID:         os.Getpid(),
			Message:     f.Text,
			Err:         f.Err,
		}, p.handover.Index)
	}
}

func (p *process) onWorkerStart() (err error) {
	if p.cfg.OnWorkerStart == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("OnWorkerStart panicked: %v\n%s", v, debug.Stack())
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan struct{})
	defer close(started)
	go p.endBoot(cancel, started)
	if err := p.cfg.OnWorkerStart(ctx, Worker{Index: p.handover.Index, PID: os.Getpid()}); err != nil {
		return fmt.Errorf("OnWorkerStart: %w", err)
	}
	return nil
}

// endBoot ends the start of a worker whose parent is gone.
func (p *process) endBoot(cancel context.CancelFunc, started <-chan struct{}) {
	select {
	case <-started:
		return
	case <-p.gone:
	}
	cancel()
	select {
	case <-started:
	case <-time.After(bootGrace):
		os.Exit(exitNoBoot)
	}
}

// serve runs the worker from its readiness to its end and returns the exit code.
func (p *process) serve() int {
	gone := p.gone
	p.server.Ready()
	p.tell(control.Message{Kind: control.KindReady, Names: registry.Names()})
	draining, signaled := false, false
	for {
		select {
		case m := <-p.messages:
			draining = p.obey(m) || draining
		case <-gone:
			gone, draining = nil, true
			p.drain(p.handover.DrainTimeout, false)
		case <-p.signals:
			if signaled {
				return exitSignaled
			}
			signaled = true
			if draining {
				continue // the first signal asks for what is already under way
			}
			draining = true
			p.tell(control.Message{Kind: control.KindDraining, Reason: "signal"})
			p.drain(p.handover.DrainTimeout, false)
		case err := <-p.served:
			if err != nil {
				slog.Default().Error("task: worker ended with tasks still running", "err", err)
				return exitUnclean
			}
			return exitDrained
		}
	}
}

func (p *process) receive() {
	defer close(p.gone)
	for {
		m, err := p.parent.Receive()
		if err != nil {
			return
		}
		p.messages <- m
	}
}

// obey carries out one message of the parent and reports whether that began a drain.
func (p *process) obey(m control.Message) (drains bool) {
	switch m.Kind {
	case control.KindAccept:
		p.accept()
		p.tell(control.Message{Kind: control.KindAccepting})
	case control.KindDrain:
		p.drain(m.Within, m.End)
		return true
	case control.KindCut:
		p.server.Cut(worker.ErrShutdown)
	}
	return false
}

func (p *process) accept() {
	if p.serving {
		return
	}
	p.serving = true
	go func() { p.served <- p.server.Serve() }()
}

// drain begins the drain, and tells the parent when the worker accepts no more connections.
func (p *process) drain(within time.Duration, end bool) {
	stopped := p.server.Drain(within, end)
	p.accept() // a worker that never accepted ends through Serve as well
	go func() {
		<-stopped
		p.tell(control.Message{Kind: control.KindStopped})
	}()
}
