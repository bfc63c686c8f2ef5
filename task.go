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
	"github.com/taskd-go/task/protocol"
)

// A Task is a pool of worker processes. The zero value is not usable; New makes
// one. Its methods are safe for concurrent use.
type Task struct {
	cfg Config

	mu       sync.Mutex
	state    state
	attached bool
	abort    context.CancelCauseFunc // ends a Start that is under way
	started  chan struct{}           // closed when Start is over
	pool     *supervisor.Supervisor  // nil in a worker of another pool
	remote   *Client                 // in a worker of another pool: the parent's pool of this name
	calls    deliverer
}

type state int

const (
	stateNew state = iota
	stateStarting
	stateRunning
	stateFailed
	stateClosed
)

// New checks cfg and returns a pool that is not started yet. A bad value is a
// *ConfigError; that includes a TempDir in which no file can be made.
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
	return &Task{cfg: cfg, started: make(chan struct{})}, nil
}

// Config returns the pool's configuration with the defaults filled in.
func (t *Task) Config() Config { return t.cfg }

// Start forks the workers and returns when every one of them accepts, or with
// the reason that one does not: its last words and its exit status. After an
// error nothing of the pool is left. ctx bounds the start only. A pool starts once.
//
// In a program that this package re-executed as a worker of this pool, Start
// runs the worker and does not return. In a worker of another pool it forks
// nothing and connects to the parent's pool of this name.
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
		err = ErrClosed // Shutdown came first and ends the pool
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
	if gate.matches(t.cfg.ServerName) {
		gate.run(t.cfg) // does not return
	}
	if IsWorker() {
		return t.connect(ctx)
	}
	if flag.Lookup("test.v") != nil && !gate.passed() {
		return errors.New("a test binary re-runs its tests in every worker unless its TestMain calls task.RunIfWorker first")
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
	t.calls = deliverer{
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

// connect is Start in a worker of another pool.
func (t *Task) connect(ctx context.Context) error {
	c, err := Dial(ctx, t.cfg)
	if err != nil {
		return fmt.Errorf("this process is a worker of pool %s and forks no pool of its own; connecting to the parent's: %w", gate.name(), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = c
	return nil
}

// caller returns what sends this pool's calls, or why nothing can; opts are the call's from then on.
func (t *Task) caller(ctx context.Context, timeout time.Duration, opts []CallOption) (deliverer, []CallOption, error) {
	t.mu.Lock()
	st, calls, remote := t.state, t.calls, t.remote
	t.mu.Unlock()
	switch {
	case st == stateClosed:
		return deliverer{}, nil, refused(ErrProcessBusy, ErrClosed, "the pool %s is closed", t.cfg.ServerName)
	case st != stateRunning && IsWorker():
		return deliverer{}, nil, refused(ErrProcessBusy, ErrNotStarted,
			"this process is a worker of pool %s, in which the pool %s is not started: a task reaches it through Dial", gate.name(), t.cfg.ServerName)
	case st != stateRunning:
		return deliverer{}, nil, refused(ErrProcessBusy, ErrNotStarted, "the pool %s is not started", t.cfg.ServerName)
	case remote != nil:
		return remote.caller(ctx, timeout, opts)
	default:
		return calls, opts, nil
	}
}

// Async hands r to the least loaded worker and returns the task's id once that
// worker has accepted it; the run goes on without the caller, and its result
// is dropped. The budget is Config.PushTimeout unless WithTimeout says
// otherwise. The error is an *Error.
func (t *Task) Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error) {
	d, opts, err := t.caller(ctx, t.cfg.PushTimeout, opts)
	if err != nil {
		return 0, err
	}
	return d.async(ctx, t.cfg.PushTimeout, r, opts)
}

// Sync hands r to the least loaded worker and waits for its result. The budget
// is 3 s unless WithTimeout says otherwise. When it ends, or ctx does, the call
// fails with ErrSockTimeout; a task that has begun goes on all the same. The
// error is an *Error.
func (t *Task) Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error) {
	d, opts, err := t.caller(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return Result{}, err
	}
	return d.sync(ctx, r, opts)
}

// AsyncMany is Async for each of rs, with one delivery and one answer each, in
// the order of rs. The tasks are spread over the workers by their free slots.
func (t *Task) AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, opts, err := t.caller(ctx, t.cfg.PushTimeout, opts)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Async, t.cfg.PushTimeout, rs, opts)
}

// SyncMany is Sync for each of rs, with one delivery and one answer each, in
// the order of rs. The tasks are spread over the workers by their free slots.
func (t *Task) SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, opts, err := t.caller(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Sync, defaultSyncTimeout, rs, opts)
}

// Status lists the workers by index; it is nil before Start and keeps the last
// counts after Shutdown.
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

// Reload replaces every worker, MaxReplacing at a time, with one that runs the
// executable as it is at its path now. Each successor is ready before its
// predecessor drains, so that no call fails of it. A generation that does not
// boot, or that lacks one of the pool's tasks, ends the Reload with an error
// and leaves the old workers in place. So does the end of ctx.
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

// Shutdown ends the pool: it takes no more calls, what is running goes on for
// at most DrainTimeout, and when all workers are gone no process and no socket
// file is left. When ctx ends first, what still runs is stopped at once, and
// the error lists it. Shutdown may be called any number of times, by several
// goroutines; all wait for the one drain. Before Start it only closes the pool.
func (t *Task) Shutdown(ctx context.Context) error {
	if t.close() {
		<-t.started
	}
	t.mu.Lock()
	pool, remote, calls := t.pool, t.remote, t.calls.client
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

// close refuses further calls and reports whether a Start ran or runs.
func (t *Task) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abort != nil {
		t.abort(ErrClosed)
	}
	t.state = stateClosed
	return t.abort != nil
}
