package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
	"github.com/taskd-go/task/worker"
)

// A Config is the configuration of a pool, which the caller has checked.
type Config struct {
	control.Settings
	ServerName, TempDir string
	MaxReplacing        int
	StartTimeout        time.Duration
	Env                 []string     // allow-list of names; nil: all
	Tasks               []string     // registry names
	Allowed             []string     // names that the workers may run; empty: all
	Logger              *slog.Logger // nil: events go to slog.Default(), the workers' output to Stdout and Stderr
	OnEvent             func(tasktype.Event)
	Stdout, Stderr      *os.File // nil: the process's own
}

// A Supervisor runs the worker processes of one pool. Its methods are safe for concurrent use.
type Supervisor struct {
	cfg     Config
	env     env
	table   *sharedstate.Parent
	files   *files
	pool    *poolSocket
	events  *eventQueue
	outputs *outputs
	builds  atomic.Int64

	inbox   chan lifecycle.Input
	started chan error       // gets one value
	over    chan struct{}    // closed at the end of the pool
	lost    []lifecycle.Lost // read after over

	// The goroutine of run owns the rest.
	machine    *lifecycle.Machine
	listeners  []*net.UnixListener
	children   map[lifecycle.Key]*child
	executable map[int]*os.File // by build
	reloads    map[int]chan<- error
	oomKills   uint64
	todo       []lifecycle.Input // inputs that follow from actions
	finished   bool
	wait       sync.WaitGroup // counts the children and the refusals
}

// env has the system calls that a test replaces.
type env struct {
	start  func(sys.Spawn) (*sys.Process, error)
	newExe func() (*os.File, error) // the program that a reload starts
	refuse func(l *net.UnixListener, index, maxPackageSize int, within time.Duration)
}

func systemEnv() env {
	return env{start: sys.Start, newExe: openExecutable, refuse: worker.Refuse}
}

// openExecutable opens the program at the path from which it was started. A newer program may be
// there now.
func openExecutable() (*os.File, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Start reserves the pool's name, binds the listeners, spawns the workers, and returns when every
// one accepts. If one does not, the error has its last output and its exit status, and nothing of
// the pool is left. ctx bounds the start only. The table stays readable after Shutdown.
func Start(ctx context.Context, cfg Config) (*Supervisor, error) {
	return start(ctx, cfg, systemEnv())
}

func start(ctx context.Context, cfg Config, e env) (*Supervisor, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s := &Supervisor{
		cfg:        cfg,
		env:        e,
		inbox:      make(chan lifecycle.Input),
		started:    make(chan error, 1),
		over:       make(chan struct{}),
		children:   make(map[lifecycle.Key]*child),
		executable: make(map[int]*os.File),
		reloads:    make(map[int]chan<- error),
		machine: lifecycle.New(lifecycle.Limits{
			Workers:      cfg.WorkerNum,
			MaxReplacing: cfg.MaxReplacing,
			StartTimeout: cfg.StartTimeout,
			DrainTimeout: cfg.DrainTimeout,
			MaxMemory:    cfg.MaxWorkerMemory,
			Tasks:        cfg.Tasks,
		}, rand.Float64),
	}
	s.builds.Store(1)
	if err := s.open(); err != nil {
		s.release()
		return nil, err
	}
	go s.run()
	s.post(lifecycle.StartWanted{})
	err := s.booted(ctx)
	if err == nil {
		return s, nil
	}
	<-s.over
	s.events.flush()
	return nil, err
}

func (s *Supervisor) booted(ctx context.Context) error {
	select {
	case err := <-s.started:
		return err
	case <-ctx.Done():
		s.post(lifecycle.StartCancelled{Cause: context.Cause(ctx)})
		return <-s.started
	}
}

// open acquires what the pool has besides its processes. After an error, release releases what it
// got.
func (s *Supervisor) open() (err error) {
	if s.files, err = takeName(s.cfg.TempDir, s.cfg.ServerName); err != nil {
		return err
	}
	if s.executable[1], err = sys.OpenSelf(); err != nil {
		return fmt.Errorf("open the running program: %w", err)
	}
	if s.table, err = sharedstate.Create(s.cfg.WorkerNum, s.cfg.MaxRunningNum); err != nil {
		return err
	}
	for i := range s.cfg.WorkerNum {
		l, err := s.files.listen(SocketPath(s.cfg.TempDir, s.cfg.ServerName, i))
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	path := poolSocketPath(s.cfg.TempDir, s.cfg.ServerName)
	if s.pool, err = openPoolSocket(s.files.listen, path, s.table.Table, s.cfg.Settings); err != nil {
		return err
	}
	s.oomKills, _ = memstat.OOMKills()
	s.events = newEventQueue(s.cfg.OnEvent, s.cfg.Logger)
	s.outputs = openOutputs(s.cfg, s.events)
	if err := s.files.watch(s.cfg.WorkerNum); err != nil {
		s.events.logger.Warn("worker pool: removed socket files will not be noticed", "error", err)
	}
	return nil
}

// release releases what open acquired. The table stays readable.
func (s *Supervisor) release() {
	if s.outputs != nil {
		s.outputs.close()
	}
	if s.pool != nil {
		s.pool.close()
	}
	for _, l := range s.listeners {
		l.Close()
	}
	for _, exe := range s.executable {
		exe.Close()
	}
	if s.files != nil {
		s.files.release()
	}
	if s.events != nil {
		s.events.close()
	}
	if s.table != nil {
		s.table.Close()
	}
}

// Table returns the pool's table.
func (s *Supervisor) Table() *sharedstate.Table { return s.table.Table }

// Reload replaces all workers, MaxReplacing at a time, with workers of the program that is now at
// the executable's path. It returns when each index serves with it; old workers may still finish
// tasks then. If the new program does not boot or lacks one of the pool's tasks, or if ctx ends,
// Reload returns an error, and workers that were not replaced stay. A second Reload at the same
// time is an error.
func (s *Supervisor) Reload(ctx context.Context) error {
	exe, err := s.env.newExe()
	if err != nil {
		return fmt.Errorf("reload: open the program: %w", err)
	}
	reply := make(chan error, 1)
	call := reloadCall{build: int(s.builds.Add(1)), exe: exe, reply: reply}
	if !s.post(call) {
		exe.Close()
		return fmt.Errorf("reload: %w", lifecycle.ErrEnding)
	}
	select {
	case err = <-reply:
	case <-ctx.Done():
		s.post(lifecycle.ReloadCancelled{Build: call.build, Cause: context.Cause(ctx)})
		err = <-reply
	}
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return nil
}

// Shutdown drains and ends the pool: it accepts no more calls, tasks run on for at most
// DrainTimeout, and when Shutdown returns no process, file or descriptor of the pool is left.
// Several goroutines may call it, any number of times; all wait for the same drain. The end of the
// ctx of any caller stops the tasks that still run, and that caller's error wraps ctx's. A
// *lifecycle.LostError lists the tasks that ran when their process ended.
func (s *Supervisor) Shutdown(ctx context.Context) error {
	s.post(lifecycle.ShutdownWanted{})
	var err error
	select {
	case <-s.over:
	case <-ctx.Done():
		if s.post(lifecycle.CutWanted{}) {
			err = fmt.Errorf("shutdown cut short: %w", context.Cause(ctx))
		}
		<-s.over
	}
	s.events.flush()
	if len(s.lost) > 0 {
		err = errors.Join(err, &lifecycle.LostError{Tasks: s.lost})
	}
	return err
}

// A reloadCall is the input of Reload.
type reloadCall struct {
	build int
	exe   *os.File
	reply chan<- error
}

// post passes ev to run. It returns false if run has ended.
func (s *Supervisor) post(ev lifecycle.Input) bool {
	select {
	case s.inbox <- ev:
		return true
	case <-s.over:
		return false
	}
}
