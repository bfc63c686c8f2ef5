package worker

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

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// waitLimit is how long a test waits for an event before it fails.
const waitLimit = time.Minute

// A testTask is a task made of functions.
type testTask struct {
	run    func(ctx context.Context, info Info) (any, error)
	handle func(ctx context.Context, err error, info Info) (any, error)
}

func (t *testTask) Run(ctx context.Context, info Info) (any, error) { return t.run(ctx, info) }

func (t *testTask) OnException(ctx context.Context, err error, info Info) (any, bool, error) {
	if t.handle == nil {
		return nil, false, err
	}
	v, failure := t.handle(ctx, err, info)
	return v, true, failure
}

// A rig is a server in this process with one row of a table.
type rig struct {
	t      testing.TB
	cfg    Config
	table  *sharedstate.Parent
	row    sharedstate.ParentRow
	server *Server
	path   string
	served chan error
	log    *testsync.Buffer

	slots   int           // of the worker
	entered chan Info     // each run of "block" says so
	gate    chan struct{} // what "block" waits for
	tasks   map[string]Decoder

	mu       sync.Mutex
	failures []Failure
}

const maxRunning = 4

func newRig(t testing.TB, change func(*rig)) *rig {
	noLeak(t)
	r := &rig{
		t:       t,
		served:  make(chan error, 1),
		log:     &testsync.Buffer{},
		slots:   maxRunning,
		entered: make(chan Info, 1000),
		gate:    make(chan struct{}),
		tasks:   map[string]Decoder{},
	}
	r.cfg = Config{
		Generation:     7,
		MaxPackageSize: protocol.DefaultPackageSize,
		FrameTimeout:   time.Second,
		DrainGrace:     time.Second,
		Lookup: func(name []byte) (Decoder, bool, string) {
			d, ok := r.tasks[string(name)]
			return d, ok, fmt.Sprintf("task %q is unknown", name)
		},
		OnException: func(f Failure) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failures = append(r.failures, f)
		},
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	r.register()
	if change != nil {
		change(r)
	}
	var err error
	r.table, err = sharedstate.Create(1, r.slots)
	require.NoError(t, err)
	r.row, err = r.table.Allocate(0, 7)
	require.NoError(t, err)
	r.row.SetPID(os.Getpid())
	dir, err := os.MkdirTemp("", "w")
	require.NoError(t, err)
	r.path = filepath.Join(dir, "s")
	r.cfg.Listener, err = sys.Listen(r.path)
	require.NoError(t, err)
	r.cfg.Row, r.cfg.Table = r.table.WorkerRow(r.row.Number()), r.table.Table
	r.server = New(r.cfg)
	t.Cleanup(func() {
		r.drain(10 * time.Second)
		// After a drain that gave up, the rest uses the row until it ends.
		r.server.wg.Wait()
		r.server.runners.wg.Wait()
		require.NoError(t, r.cfg.Listener.Close())
		require.NoError(t, r.table.Close())
		require.NoError(t, os.RemoveAll(dir))
	})
	return r
}

// start is a rig that accepts.
func start(t testing.TB, change func(*rig)) *rig {
	r := newRig(t, change)
	r.server.Ready()
	r.table.SetCurrent(0, r.row)
	go func() { r.served <- r.server.Serve() }()
	return r
}

// drain ends the server and returns what Serve returned; a second call returns nil.
func (r *rig) drain(within time.Duration) error {
	select {
	case <-r.server.Drain(within, false):
	case <-time.After(waitLimit):
		r.t.Fatal("the server did not stop accepting")
	}
	select {
	case err := <-r.served:
		r.served <- nil
		return err
	case <-time.After(waitLimit):
		r.t.Fatalf("the drain did not end\n%s", stacks())
		return nil
	}
}

func taskOf(run func(ctx context.Context, info Info) (any, error)) Decoder {
	return func([]byte) (Task, error) { return &testTask{run: run}, nil }
}

func (r *rig) register() {
	r.tasks["echo"] = func(payload []byte) (Task, error) {
		var s string
		if err := msgpack.Unmarshal(payload, &s); err != nil {
			return nil, err
		}
		return &testTask{run: func(context.Context, Info) (any, error) { return s, nil }}, nil
	}
	r.tasks["block"] = taskOf(func(_ context.Context, info Info) (any, error) {
		r.entered <- info
		<-r.gate
		return "done", nil
	})
	r.tasks["obedient"] = taskOf(func(ctx context.Context, info Info) (any, error) {
		r.entered <- info
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	r.tasks["fail"] = taskOf(func(context.Context, Info) (any, error) { return nil, errors.New("no luck") })
	r.tasks["panic"] = taskOf(func(context.Context, Info) (any, error) { panic("out of order") })
	r.tasks["goexit"] = taskOf(func(context.Context, Info) (any, error) { runtime.Goexit(); return nil, nil })
}

// add registers a task before the first call of it.
func (r *rig) add(name string, run func(ctx context.Context, info Info) (any, error)) {
	r.tasks[name] = taskOf(run)
}

func (r *rig) told() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Failure(nil), r.failures...)
}

// awaitEntered waits until a task that says so has begun.
func (r *rig) awaitEntered() Info {
	r.t.Helper()
	select {
	case info := <-r.entered:
		return info
	case <-time.After(waitLimit):
		r.t.Fatalf("no task has begun\n%s", stacks())
		return Info{}
	}
}

// A count is what the row has counted.
type count struct{ accepted, success, fail, expired, busy uint64 }

// still waits until nothing runs, checks that the columns add up, and returns them.
func (r *rig) still() count {
	r.t.Helper()
	r.eventually("nothing runs", func() bool { return r.row.Running() == 0 })
	s := r.table.Status()[0]
	require.Equal(r.t, s.Accepted, s.Success+s.Fail+s.Lost, "accepted = success + fail + lost when nothing runs")
	require.Empty(r.t, r.row.Tasks(), "in-flight records when nothing runs")
	return count{s.Accepted, s.Success, s.Fail, s.Expired, s.Busy}
}

// eventually polls, for what has no event to wait for.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(waitLimit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("not in time: %s\n%s", what, stacks())
		}
	}
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// noLeak fails the test when it ends with goroutines that it did not begin with.
func noLeak(t testing.TB) {
	before := goroutines()
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
			left = nil
			for id, stack := range goroutines() {
				if _, old := before[id]; !old {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
		}
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

func goroutines() map[string]string {
	all := map[string]string{}
	for _, g := range strings.Split(stacks(), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(g, "goroutine "), " ")
		if strings.Contains(g, "testing.") && !strings.Contains(g, "taskd-go") ||
			strings.Contains(g, "runtime.") && !strings.Contains(g, "taskd-go") {
			continue // the test framework's and the runtime's own
		}
		all[id] = g
	}
	return all
}
