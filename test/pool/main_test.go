package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testkit"
)

// poolConfig is what the workers of this binary need to know: the functions.
func poolConfig() task.Config {
	cfg := task.Config{}
	if os.Getenv("TEST_ON_WORKER_START") != "" {
		cfg.OnWorkerStart = onWorkerStart
	}
	cfg.OnException = func(err *task.Error, index int) {
		fmt.Fprintf(os.Stderr, "OnException worker=%d status=%d delivery=%s task=%d: %s\n", index, err.Status, err.Delivery, err.TaskID, err.Message)
	}
	return cfg
}

func TestMain(m *testing.M) {
	if host := os.Getenv("TEST_HOST"); host != "" {
		os.Exit(runHost(host)) // and so do the host's workers
	}
	if task.IsWorker() {
		cfg := poolConfig()
		cfg.ServerName = os.Getenv("TEST_SERVER_NAME")
		task.RunIfWorker(cfg)
	}
	task.RunIfWorker()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each worker of a race test sleeps for a second at its end
	os.Exit(m.Run())
}

// atRace widens the upper bounds of the fault rows under the race detector.
func atRace(d time.Duration) time.Duration {
	if raceEnabled {
		return 5 * d
	}
	return d
}

// patience bounds every wait for an event that is certain to come.
const patience = testkit.Patience

// briefly is the timeout of calls that are to begin and then run out of time, also on a busy machine.
const briefly = time.Second

// A pool is a started pool under test, with what it wrote and told.
type pool struct {
	*task.Task
	t   *testing.T
	dir string
	log *testkit.Buffer

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
	before := leftovers()
	p := &pool{t: t, log: &testkit.Buffer{}, news: make(chan struct{}, 1)}
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
	told := cfg.OnEvent
	cfg.OnEvent = func(e task.Event) {
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if told != nil {
			told(e)
		}
	}
	t.Setenv("TEST_SERVER_NAME", cfg.ServerName)
	var err error
	p.Task, err = task.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := p.Shutdown(ctx)
		if err != nil {
			t.Logf("shutdown: %v", err)
		}
		assert.NotContains(t, p.log.String(), "DATA RACE", "a worker's race detector speaks")
		for _, e := range p.Events() {
			assert.NotEqual(t, 66, e.ExitCode, "a worker's race detector ended it")
		}
		before.check(t, p.dir)
		if t.Failed() {
			t.Logf("the pool's log:\n%s", p.log.String())
		}
	})
	return p
}

func (p *pool) Events() []task.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]task.Event(nil), p.events...)
}

// event waits for an event that match accepts.
func (p *pool) event(match func(task.Event) bool) task.Event {
	p.t.Helper()
	limit := time.After(patience)
	for {
		for _, e := range p.Events() {
			if match(e) {
				return e
			}
		}
		select {
		case <-p.news:
		case <-limit:
			require.FailNow(p.t, "the event did not come", "events: %+v\nlog:\n%s", p.Events(), p.log.String())
		}
	}
}

// status waits until the statuses satisfy ok. The table has no event for a
// reader, so this polls.
func (p *pool) status(ok func([]task.WorkerStatus) bool) []task.WorkerStatus {
	p.t.Helper()
	var last []task.WorkerStatus
	eventually(p.t, func() bool { last = p.Status(); return ok(last) }, func() string { return fmt.Sprintf("%+v\nlog:\n%s", last, p.log.String()) })
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
		}
		return sum.Running == 0 && sum.Accepted == sum.Success+sum.Fail+sum.Lost
	})
	return sum
}

func eventually(t *testing.T, ok func() bool, state func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); pause() {
		if time.Now().After(end) {
			require.FailNow(t, "it did not happen", state())
		}
	}
}

// pause is the one polling step of these tests.
func pause() { time.Sleep(2 * time.Millisecond) }

// A left is what a test must not leave behind.
type left struct {
	goroutines int
	fds        int
	children   int
}

func leftovers() left { return left{runtime.NumGoroutine(), countFDs(), len(children())} }

func (l left) check(t *testing.T, dir string) {
	t.Helper()
	files := func() []string {
		found, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
		return found
	}
	end := time.Now().Add(5 * time.Second)
	for time.Now().Before(end) {
		if runtime.NumGoroutine() <= l.goroutines && countFDs() <= l.fds && len(files()) == 0 && len(children()) <= l.children {
			return
		}
		pause()
	}
	buf := make([]byte, 1<<20)
	assert.LessOrEqual(t, runtime.NumGoroutine(), l.goroutines, "goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
	assert.LessOrEqual(t, countFDs(), l.fds, "descriptors are left")
	assert.Empty(t, files(), "socket files are left")
	assert.LessOrEqual(t, len(children()), l.children, "processes are left: %v", children())
}

func countFDs() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// children lists the processes whose parent is this one.
func children() []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) > 1 && f[1] == fmt.Sprint(os.Getpid()) {
			found = append(found, string(b))
		}
	}
	return found
}

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
