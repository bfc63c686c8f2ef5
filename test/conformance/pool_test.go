package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
	"github.com/taskd-go/task/queue"
)

// remote is what the workers of this binary can do.
var remote = pooljob.Register(pooledJobs())

// A place is where a pooled job leaves its marks.
type place struct{ Dir string }

func (p place) runs() string { return filepath.Join(p.Dir, "runs") }
func (p place) gate() string { return filepath.Join(p.Dir, "gate") }

func pooledJobs() *job.Registry {
	reg, err := job.NewRegistry(
		job.Typed("stuck", func(context.Context, place, job.Envelope) job.Result { select {} }),
		// patient waits at the gate, deaf to its context, and notes each of its runs by its
		// attempt.
		job.Typed("patient", func(_ context.Context, p place, e job.Envelope) job.Result {
			f, err := os.OpenFile(p.runs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return job.Fail(err)
			}
			fmt.Fprintln(f, e.Attempt)
			f.Close()
			_, err = os.ReadFile(p.gate())
			return job.FromError(err)
		}),
		queue.HandlerFor[hooked](),
	)
	if err != nil {
		panic(err) // two handlers of two types
	}
	return reg
}

// A hooked job fails in the pool. Its methods tell which process asked them.
type hooked struct{ place }

func (hooked) JobType() string { return "hooked" }

func (j hooked) Handle(context.Context) error { return j.note("handle", errors.New("no")) }

func (hooked) Tries() int { return 1 }

func (j hooked) Failed(_ context.Context, err error) { _ = j.note("failed: "+err.Error(), nil) }

func (j hooked) Middleware() []job.Middleware {
	return []job.Middleware{func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			_ = j.note("layer", nil)
			return next(ctx, e)
		}
	}}
}

func (p place) note(what string, err error) error {
	f, open := os.OpenFile(p.runs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if open != nil {
		return open
	}
	where := "supervisor"
	if task.IsWorker() {
		where = "worker"
	}
	_, write := fmt.Fprintf(f, "%s in the %s\n", what, where)
	return errors.Join(write, f.Close(), err)
}

// TestHooksOfAPooledJobRunWhereItIsSupervised lets a job run in the pool, and its layers and its
// Failed method here.
func TestHooksOfAPooledJobRunWhereItIsSupervised(t *testing.T) {
	db := openSQLite(t)
	q := openQueue(t, db)
	at := place{t.TempDir()}
	_, err := q.Push(t.Context(), hooked{at})
	require.NoError(t, err)
	w := queue.NewWorker(q, remote.Handlers(startPool(t), 0), queue.Hooks(pooledJobs()),
		queue.Runner(&job.Runner{Logger: slog.New(slog.DiscardHandler)}))
	n, err := w.WorkUntilEmpty(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	text, err := os.ReadFile(at.runs())
	require.NoError(t, err)
	assert.Equal(t, "layer in the supervisor\nhandle in the worker\nfailed: no in the supervisor\n", string(text))
}

// TestANeighboursHardLimitCostsNoAttempt lets a job die with a worker that is stopped because
// another job is past its limit: it comes again at once, without an attempt or a crash, and its
// neighbour goes the way of a timeout.
func TestANeighboursHardLimitCostsNoAttempt(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			q := queueOver(t, db.SQL, db)
			pool := startPool(t)
			handlers := remote.Handlers(pool, 0)
			limited, err := remote.Handlers(pool, 200*time.Millisecond).Require("stuck")
			require.NoError(t, err)
			require.NoError(t, handlers.Replace(job.Func("stuck", limited.Handle)))

			at := place{t.TempDir()}
			require.NoError(t, syscall.Mkfifo(at.gate(), 0o600))
			w := queue.NewWorker(q, handlers, queue.Runner(&job.Runner{Logger: slog.New(slog.NewTextHandler(t.Output(),
				nil))}), queue.Poll(10*time.Millisecond))
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Work(ctx, 0) }()

			patient := pushed(t, q, "patient", at)
			ran := func(want string) func() bool {
				return func() bool {
					text, _ := os.ReadFile(at.runs())
					return strings.Join(strings.Fields(string(text)), " ") == want
				}
			}
			require.Eventually(t, ran("1"), 30*time.Second, 5*time.Millisecond, "the patient job runs")
			stuck := pushed(t, q, "stuck", at, queue.Tries(1))
			require.Eventually(t, ran("1 1"), 30*time.Second, 5*time.Millisecond, "it runs again, as its first attempt")

			var record queue.Record
			record, err = q.Inspect(t.Context(), patient)
			require.NoError(t, err)
			assert.Equal(t, 1, record.Job.Attempts)
			assert.Zero(t, record.Job.Crashes)
			assert.Empty(t, record.Job.Failures)
			require.Eventually(t, func() bool {
				record, err = q.Inspect(t.Context(), stuck)
				return err == nil && len(record.Dead) == 1
			}, 30*time.Second, 5*time.Millisecond, "the stuck job is dead")
			assert.Equal(t, job.ReasonTimeout, record.Dead[0].Reason)

			require.NoError(t, os.WriteFile(at.gate(), nil, 0o600))
			stop()
			require.NoError(t, <-ended)
			size, err := q.Size(t.Context(), "")
			require.NoError(t, err)
			assert.Zero(t, size)
		})
	}
}

func pushed(t *testing.T, q *queue.Queue, jobType string, at place, opts ...queue.PushOption) (id string) {
	t.Helper()
	e, err := job.New(jobType, at, nil, job.RetryPolicy{})
	require.NoError(t, err)
	id, err = q.PushEnvelope(t.Context(), e, opts...)
	require.NoError(t, err)
	return id
}

// startPool starts a pool of one worker with room for two jobs.
func startPool(t *testing.T) *task.Task {
	t.Helper()
	dir, err := os.MkdirTemp("", "qc") // short: a socket's path is
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	pool, err := task.New(task.Config{
		WorkerNum: 1, MaxRunningNum: 2, ServerName: "jobs", TempDir: dir, DrainTimeout: 200 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, pool.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = pool.Shutdown(ctx)
	})
	return pool
}
