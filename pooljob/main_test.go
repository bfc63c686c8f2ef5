package pooljob

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/job"
)

var remote = register(taskName+"_test", testHandlers()) // Register is the example's

func TestMain(m *testing.M) {
	task.RunIfWorker()
	os.Exit(m.Run())
}

// order is the payload of every test job.
type order struct {
	Dir   string // where the handler leaves its marks
	Begun string // address of a testsync.Rendezvous where it waits before it runs; "": none
	What  string
}

// testHandlers is what the workers of this binary can do.
func testHandlers() *job.Registry {
	reg, err := job.NewRegistry(
		handler("answer", func(_ context.Context, o order) job.Result { return answers[o.What] }),
		handler("stuck", func(context.Context, order) job.Result { select {} }),
		handler("stops", func(ctx context.Context, _ order) job.Result { <-ctx.Done(); return job.FromError(ctx.Err()) }),
		handler("exit", func(context.Context, order) job.Result { os.Exit(1); return job.Success() }),
		handler("panic", func(context.Context, order) job.Result { panic("at the disco") }),
		handler("panic at length", func(context.Context, order) job.Result { panic(strings.Repeat("é", 5<<19)) }),
	)
	if err != nil {
		panic(err)
	}
	return reg
}

var answers = map[string]job.Result{
	"success":     job.Success(),
	"retry":       job.Retry(errors.New("down")),
	"retry nil":   job.Retry(nil),
	"retry after": job.RetryAfter(errors.New("down"), 0),
	"fail typed":  job.Fail(fmt.Errorf("order 17: %w", &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist})),
	"fail":        job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: errors.New("odd")}),
	"discard":     job.Discard("stale"),
	"skip":        job.Skip("held"),
	"defer":       job.Defer(time.Minute).WithErr(errors.New("later")),
	"no result":   {},
}

// handler marks in o.Dir that it runs: a line with its pid in "runs", and a lock that no other run
// may hold at the time.
func handler(jobType string, run func(context.Context, order) job.Result) job.Handler {
	return job.Typed(jobType, func(ctx context.Context, o order, _ job.Envelope) job.Result {
		if o.Dir == "" {
			return run(ctx, o)
		}
		alone, err := os.OpenFile(filepath.Join(o.Dir, "alone"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return job.Fail(err)
		}
		defer alone.Close()
		word := "run"
		if syscall.Flock(int(alone.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			word = "overlap"
		}
		runs, err := os.OpenFile(filepath.Join(o.Dir, "runs"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return job.Fail(err)
		}
		fmt.Fprintln(runs, word, os.Getpid())
		runs.Close()
		if o.Begun != "" {
			if err := awaitRelease(o.Begun); err != nil {
				return job.Fail(err)
			}
		}
		return run(ctx, o)
	})
}

// awaitRelease reports to the rendezvous at addr and returns when the test releases the job.
func awaitRelease(addr string) error {
	c, err := net.Dial("unix", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintln(c, 0, 0, os.Getpid())
	_, err = bufio.NewReader(c).ReadString('\n')
	return err
}

// startPool starts a pool of one worker with one slot.
func startPool(t testing.TB) *task.Task {
	t.Helper()
	dir, err := os.MkdirTemp("", "pj") // short: a socket's path is
	require.NoError(t, err)
	pool, err := task.New(task.Config{
		WorkerNum: 1, MaxRunningNum: 1, ServerName: "jobs", TempDir: dir, DrainTimeout: time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testsync.WaitLimit)
	defer cancel()
	require.NoError(t, pool.Start(ctx))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = pool.Shutdown(ctx) // a stuck job is stopped, which is an error
		os.RemoveAll(dir)
	})
	return pool
}

func newJob(t testing.TB, jobType string, o order, attempts int) job.Envelope {
	t.Helper()
	p := job.DefaultRetryPolicy()
	p.MaxAttempts = attempts
	e, err := job.New(jobType, o, nil, p)
	require.NoError(t, err)
	return e
}
