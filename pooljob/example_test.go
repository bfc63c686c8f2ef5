package pooljob_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
)

// remote is set in the workers too: a worker is the program itself, started again, which registers
// the handlers before it gets to main.
var remote = pooljob.Register(newRegistry())

type report struct{ Month string }

func newRegistry() *job.Registry {
	registry, err := job.NewRegistry(
		job.Typed("report.export", func(context.Context, report, job.Envelope) job.Result {
			return job.Success()
		}),
		job.Func("report.stuck", func(context.Context, job.Envelope) job.Result {
			select {} // ignores its context
		}),
	)
	if err != nil {
		panic(err)
	}
	return registry
}

// A job that ignores its context is stopped with its process at the hard limit of 500 ms. It runs
// again as the policy says, in the process that the pool starts in its place.
func Example() {
	dir, err := os.MkdirTemp("", "reports")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	pool, err := task.New(task.Config{
		WorkerNum: 1, MaxRunningNum: 1, ServerName: "reports", TempDir: dir, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := pool.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Shutdown(ctx)

	handlers := remote.Handlers(pool, 500*time.Millisecond)
	runner := &job.Runner{Policy: job.DefaultRetryPolicy().Fixed(time.Second), Logger: slog.New(slog.DiscardHandler)}
	for _, jobType := range []string{"report.export", "report.stuck"} {
		h, err := handlers.Require(jobType)
		if err != nil {
			fmt.Println(err)
			return
		}
		e, err := job.New(jobType, report{Month: "2026-06"}, nil, runner.Policy)
		if err != nil {
			fmt.Println(err)
			return
		}
		d := runner.Decide(ctx, h, e)
		fmt.Printf("%s: %s %q\n", jobType, d.Outcome, d.Reason)
	}
	// Output:
	// report.export: success ""
	// report.stuck: requeued "timeout"
}
