package tasktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/worker"
)

// cleanupWithin bounds the drain at the end of a test.
const cleanupWithin = 5 * time.Second

// A Pool is a pool inside this process. Its methods, and those of the Caller that delivers its
// calls, are safe for concurrent use.
type Pool struct {
	task.Caller // set by Start; do not change it

	cfg    task.Config
	log    *slog.Logger
	table  *sharedstate.Parent
	slots  []*slot
	client *task.Client // the Caller
	stop   func()       // closes the control socket
	lookup func(name []byte) (worker.Decoder, bool, string)
	faults faults
	events *events

	generation atomic.Uint64
	closing    chan struct{} // closed when the drain begins
	cut        chan struct{} // closed when the pool no longer waits for running tasks
	over       chan struct{} // closed at the pool's end
	shutdown   sync.Once
	cutOnce    sync.Once
	wait       sync.WaitGroup // for the slots and the workers that drain

	mu   sync.Mutex
	lost []lifecycle.Lost
}

var _ task.Caller = (*Pool)(nil)

// New starts a pool and shuts it down in t's cleanup. If the pool does not start, New fails t. cfg
// means what it means to task.New; the package's comment lists the fields without effect.
func New(t testing.TB, cfg task.Config) *Pool {
	t.Helper()
	p, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupWithin)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Logf("tasktest: %v", err)
		}
		p.events.wait()
	})
	return p
}

// Start starts a pool, which the caller shuts down. If the pool does not start, the error is a
// *task.ConfigError, as that of task.New, or one like that of Task.Start.
func Start(cfg task.Config) (*Pool, error) {
	dir, err := os.MkdirTemp("", "task") // t.TempDir is too long for a socket's path
	if err != nil {
		return nil, fmt.Errorf("tasktest: %w", err)
	}
	cfg.TempDir = dir
	checked, err := task.New(cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &Pool{
		cfg:     checked.Config(),
		log:     cfg.Logger,
		lookup:  registry.Lookup(allowed(cfg.Tasks)),
		closing: make(chan struct{}),
		cut:     make(chan struct{}),
		over:    make(chan struct{}),
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.events = newEvents(cfg.OnEvent)
	if err := p.start(); err != nil {
		_ = p.Shutdown(context.Background())
		return nil, fmt.Errorf("task: pool %s did not start: %w", p.cfg.ServerName, err)
	}
	return p, nil
}

func allowed(tasks []task.Runner) []string {
	var names []string
	for _, r := range tasks {
		name, _, _ := registry.Find(r)
		names = append(names, name)
	}
	return names
}

// start starts the workers and connects to them. After an error Shutdown releases what it made.
func (p *Pool) start() (err error) {
	if p.table, err = sharedstate.Create(p.cfg.WorkerNum, p.cfg.MaxRunningNum); err != nil {
		return err
	}
	for i := range p.cfg.WorkerNum {
		l, err := sys.Listen(supervisor.SocketPath(p.cfg.TempDir, p.cfg.ServerName, i))
		if err != nil {
			return err
		}
		s := &slot{p: p, index: i, listener: l}
		p.slots = append(p.slots, s)
		w, err := s.boot(task.ReasonStarted)
		if err != nil {
			return fmt.Errorf(
				"worker %d (pid %d) did not start: %s: %w",
				i,
				os.Getpid(),
				supervisor.Describe(sharedstate.End{Reason: task.ReasonBootFailed, Code: 1}),
				err,
			)
		}
		s.enter(w)
		p.wait.Go(func() { s.run(w) })
	}
	settings := control.Settings{
		WorkerNum:      p.cfg.WorkerNum,
		MaxRunningNum:  p.cfg.MaxRunningNum,
		MaxPackageSize: p.cfg.MaxPackageSize,
	}
	if p.stop, err = supervisor.ServeTable(p.cfg.TempDir, p.cfg.ServerName, p.table.Table, settings); err != nil {
		return err
	}
	p.client, err = task.Dial(context.Background(), p.cfg)
	p.Caller = p.client
	return err
}

// Config returns the configuration with the defaults filled in. With its TempDir and ServerName
// task.Dial reaches the pool.
func (p *Pool) Config() task.Config { return p.cfg }

// Status lists the workers by index. It returns the last counts after Shutdown.
func (p *Pool) Status() []task.WorkerStatus {
	return p.table.Status()
}

// Shutdown ends the pool: it accepts no more calls and returns when the running tasks have ended,
// at the latest after DrainTimeout or at the end of ctx. Tasks that still run then count as lost,
// and the error lists them; they run on as goroutines. Shutdown may be called any number of times.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.shutdown.Do(func() {
		if p.table != nil {
			p.table.SetClosed()
		}
		p.events.pool(task.EventShutdown, task.ReasonShutdown)
		close(p.closing)
		go p.end()
	})
	var err error
	select {
	case <-p.over:
	case <-ctx.Done():
		p.cutOnce.Do(func() { close(p.cut) })
		err = fmt.Errorf("shutdown cut short: %w", context.Cause(ctx))
		<-p.over
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lost) > 0 {
		err = errors.Join(err, &lifecycle.LostError{Tasks: p.lost})
	}
	return err
}

// end releases everything once the slots have drained.
func (p *Pool) end() {
	defer close(p.over)
	p.wait.Wait()
	if p.client != nil {
		_ = p.client.Close()
	}
	if p.stop != nil {
		p.stop()
	}
	for _, s := range p.slots {
		_ = s.listener.Close()
	}
	if p.table != nil {
		_ = p.table.Close()
	}
	if err := os.RemoveAll(p.cfg.TempDir); err != nil {
		p.log.Error("tasktest: the folder of the sockets stays", "err", err)
	}
	p.events.close()
}
