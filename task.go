package task

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/supervisor"
)

// A Task is a handle on a pool of worker processes. New makes one; the zero value is not usable.
// Its methods are safe for concurrent use.
type Task struct {
	calls
	cfg Config

	mu        sync.Mutex
	state     state
	attached  bool
	abort     context.CancelCauseFunc // ends a Start that is under way
	started   chan struct{}           // closed when Start returns
	pool      *supervisor.Supervisor  // nil in a worker of another pool
	remote    *Client                 // in a worker of another pool: the parent's pool of this name
	deliverer deliverer
}

type state int

const (
	stateNew state = iota
	stateStarting
	stateRunning
	stateFailed
	stateClosed
)

// New checks cfg and returns a pool that is not started yet. For a bad value, and for a TempDir in
// which no file can be made, the error is a *ConfigError.
func New(cfg Config) (*Task, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if !IsWorker() {
		if err := cfg.checkDir(); err != nil {
			return nil, err
		}
	}
	t := &Task{cfg: cfg, started: make(chan struct{})}
	t.calls = calls{cfg.PushTimeout, t.find}
	return t, nil
}

// Config returns the configuration with the defaults filled in.
func (t *Task) Config() Config { return t.cfg }

// Start starts the workers and returns when each of them accepts calls. If one does not, the error
// has its last output and its exit status, and no process or file of the pool is left. ctx bounds
// the start only. A pool starts once.
//
// In a program that this package re-executed as a worker of this pool, Start runs the worker and
// does not return. In a worker of another pool, Start starts no process and connects to the
// parent's pool of this name.
func (t *Task) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := t.begin(cancel); err != nil {
		return err
	}
	defer close(t.started)
	err := t.start(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.state == stateStarting:
		t.state = stateFailed
	case err == nil && t.state == stateStarting:
		t.state = stateRunning
	case err == nil:
		err = ErrClosed // Shutdown was called meanwhile and ends the pool
	}
	if err != nil {
		return fmt.Errorf("task: pool %s did not start: %w", t.cfg.ServerName, err)
	}
	return nil
}

func (t *Task) begin(abort context.CancelCauseFunc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.state {
	case stateNew:
		t.state, t.abort = stateStarting, abort
		return nil
	case stateClosed:
		return fmt.Errorf("task: pool %s: %w", t.cfg.ServerName, ErrClosed)
	default:
		return fmt.Errorf("task: pool %s was started before; a pool starts once", t.cfg.ServerName)
	}
}

func (t *Task) start(ctx context.Context) error {
	if entry.matches(t.cfg.ServerName) {
		entry.run(t.cfg) // does not return
	}
	if IsWorker() {
		return t.connect(ctx)
	}
	if flag.Lookup("test.v") != nil && !entry.passed() {
		return errors.New(
			"a test binary re-runs its tests in every worker unless its TestMain calls task.RunIfWorker first",
		)
	}
	pool, err := supervisor.Start(ctx, supervisor.Config{
		Settings:     t.cfg.settings(),
		ServerName:   t.cfg.ServerName,
		TempDir:      t.cfg.TempDir,
		MaxReplacing: t.cfg.MaxReplacing,
		StartTimeout: t.cfg.StartTimeout,
		Env:          t.cfg.Env,
		Tasks:        registry.Names(),
		Allowed:      t.cfg.allowed(),
		Logger:       t.cfg.Logger,
		OnEvent:      t.cfg.OnEvent,
		Stdout:       os.Stdout,
		Stderr:       os.Stderr,
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool = pool
	t.deliverer = deliverer{
		registered: true,
		client: client.New(client.Config{
			Table:          pool.Table(),
			SocketPath:     func(i int) string { return supervisor.SocketPath(t.cfg.TempDir, t.cfg.ServerName, i) },
			MaxPackageSize: t.cfg.MaxPackageSize,
			Describe:       supervisor.Describe,
		}),
	}
	return nil
}

// connect does what Start does in a worker of another pool.
func (t *Task) connect(ctx context.Context) error {
	c, err := Dial(ctx, t.cfg)
	if err != nil {
		return fmt.Errorf(
			"this process is a worker of pool %s and forks no pool of its own; connecting to the parent's: %w",
			entry.name(),
			err,
		)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = c
	return nil
}

// find returns the deliverer for this pool, or why the pool takes no call.
func (t *Task) find(ctx context.Context, timeout time.Duration) (d deliverer, waited time.Duration, err error) {
	t.mu.Lock()
	st, own, remote := t.state, t.deliverer, t.remote
	t.mu.Unlock()
	name := t.cfg.ServerName
	switch {
	case st == stateClosed:
		return deliverer{}, 0, refused(ErrProcessBusy, ErrClosed, "the pool %s is closed", name)
	case st != stateRunning && IsWorker():
		return deliverer{}, 0, refused(
			ErrProcessBusy,
			ErrNotStarted,
			"this process is a worker of pool %s, in which the pool %s is not started: a task reaches it through Dial",
			entry.name(),
			name,
		)
	case st != stateRunning:
		return deliverer{}, 0, refused(ErrProcessBusy, ErrNotStarted, "the pool %s is not started", name)
	case remote != nil:
		return remote.find(ctx, timeout)
	default:
		return own, 0, nil
	}
}

// Status lists the workers by index. It returns nil before Start, and the last counts after
// Shutdown.
func (t *Task) Status() []WorkerStatus {
	t.mu.Lock()
	pool, remote := t.pool, t.remote
	t.mu.Unlock()
	switch {
	case remote != nil:
		return remote.Status()
	case pool != nil:
		return pool.Table().Status()
	default:
		return nil
	}
}

// Reload replaces every worker, MaxReplacing at a time, with one that runs the executable that is
// at its path now. It returns when each successor accepts calls. A successor is ready before its
// predecessor drains, so no call fails because of a Reload. If the new executable does not boot or
// lacks one of the pool's tasks, or if ctx ends, Reload returns an error and the workers that were
// not yet replaced stay. A second Reload at the same time fails.
func (t *Task) Reload(ctx context.Context) error {
	t.mu.Lock()
	pool, st := t.pool, t.state
	t.mu.Unlock()
	if st == stateClosed {
		return fmt.Errorf("task: reload: %w", ErrClosed)
	}
	if pool == nil || st != stateRunning {
		return fmt.Errorf("task: reload: %w in this process", ErrNotStarted)
	}
	return pool.Reload(ctx)
}

// Shutdown ends the pool: it accepts no more calls, running tasks have DrainTimeout to end, and
// when Shutdown returns no process and no socket file is left. When ctx ends first, Shutdown stops
// what still runs, and its error lists those tasks. Several goroutines may call Shutdown, any
// number of times; all wait for the same drain. Before Start it only closes the pool.
func (t *Task) Shutdown(ctx context.Context) error {
	if t.close() {
		<-t.started
	}
	t.mu.Lock()
	pool, remote, calls := t.pool, t.remote, t.deliverer.client
	t.mu.Unlock()
	if remote != nil {
		return remote.Close()
	}
	if pool == nil {
		return nil
	}
	err := pool.Shutdown(ctx)
	return errors.Join(err, calls.Close(ctx))
}

// close refuses further calls and reports whether Start was called.
func (t *Task) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abort != nil {
		t.abort(ErrClosed)
	}
	t.state = stateClosed
	return t.abort != nil
}
