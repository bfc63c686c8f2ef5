package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// A pool is a started pool under test, with its log and its events.
type pool struct {
	*task.Task
	t   *testing.T
	dir string
	log *testsync.Buffer

	mu     sync.Mutex
	events []task.Event
	news   chan struct{}
}

// startPool starts a pool of the test binary and, at the test's end, shuts it
// down and checks that nothing of it is left.
func startPool(t *testing.T, cfg task.Config) *pool {
	t.Helper()
	p := newPool(t, cfg)
	require.NoError(t, p.Start(context.Background()))
	return p
}

func newPool(t *testing.T, cfg task.Config) *pool {
	t.Helper()
	before := currentUsage()
	p := &pool{t: t, log: &testsync.Buffer{}, news: make(chan struct{}, 1)}
	if cfg.TempDir == "" {
		cfg.TempDir = shortDir(t)
	}
	p.dir = cfg.TempDir
	if cfg.ServerName == "" {
		cfg.ServerName = "p"
	}
	switch cfg.Logger {
	case noLogger:
		cfg.Logger = nil
	case nil:
		cfg.Logger = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	onEvent := cfg.OnEvent
	cfg.OnEvent = func(e task.Event) {
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if onEvent != nil {
			onEvent(e)
		}
	}
	var err error
	p.Task, err = task.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		err := p.Shutdown(ctx)
		if err != nil {
			t.Logf("shutdown: %v", err)
		}
		assert.False(t, strings.Contains(p.log.String(), "DATA RACE"), "a worker's race detector found one")
		for _, e := range p.Events() {
			assert.NotEqual(t, 66, e.ExitCode, "a worker's race detector ended it")
		}
		p.checkGone(before)
		if t.Failed() {
			t.Logf("the end of the pool's log:\n%s", p.log.Tail())
		}
	})
	return p
}

func (p *pool) Events() []task.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]task.Event(nil), p.events...)
}

// outline lists the last events, a line each.
func (p *pool) outline() string {
	var b strings.Builder
	events := p.Events()
	for _, e := range events[max(0, len(events)-40):] {
		fmt.Fprintf(&b, "%s %s worker=%d pid=%d %.200s\n", e.Kind, e.Reason, e.Worker.Index, e.Worker.PID, e.Text)
	}
	return b.String()
}

// event waits for an event that match accepts.
func (p *pool) event(match func(task.Event) bool) task.Event {
	p.t.Helper()
	limit := time.After(waitLimit)
	for {
		for _, e := range p.Events() {
			if match(e) {
				return e
			}
		}
		select {
		case <-p.news:
		case <-limit:
			require.FailNow(p.t, "the event did not come", p.outline())
		}
	}
}

// status waits until the statuses satisfy ok. The table has no event for a
// reader, so this polls.
func (p *pool) status(ok func([]task.WorkerStatus) bool) []task.WorkerStatus {
	p.t.Helper()
	var last []task.WorkerStatus
	eventually(p.t, func() bool { last = p.Status(); return ok(last) }, func() string { return fmt.Sprintf("%+v", last) })
	return last
}

// still waits until no task runs and checks that the counts add up.
func (p *pool) still() task.WorkerStatus {
	p.t.Helper()
	var sum task.WorkerStatus
	p.status(func(rows []task.WorkerStatus) bool {
		sum = task.WorkerStatus{}
		for _, r := range rows {
			sum.Running += r.Running
			sum.Success += r.Success
			sum.Fail += r.Fail
			sum.Accepted += r.Accepted
			sum.Lost += r.Lost
			sum.Busy += r.Busy
			sum.Expired += r.Expired
			sum.Restarts += r.Restarts
			sum.Degraded = sum.Degraded || r.Degraded
		}
		return sum.Running == 0 && sum.Accepted == sum.Success+sum.Fail+sum.Lost
	})
	return sum
}

func eventually(t *testing.T, ok func() bool, state func() string) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !ok(); pause() {
		if time.Now().After(end) {
			require.FailNow(t, "it did not happen", state())
		}
	}
}

// pause is the one polling step of these tests.
func pause() { time.Sleep(2 * time.Millisecond) }

// shortDir is a directory whose socket paths stay below the limit.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tp")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// callError returns err as the *task.Error that every failed call is.
func callError(t *testing.T, err error) *task.Error {
	t.Helper()
	var e *task.Error
	require.True(t, errors.As(err, &e), "got %T: %v", err, err)
	return e
}

// noLogger marks a pool that has no Logger, so that its output goes on as it is.
var noLogger = slog.New(slog.DiscardHandler)
