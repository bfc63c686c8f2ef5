package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// Import is a job that fails at its first attempt.
type Import struct{ File string }

func (Import) JobType() string { return "import" }

func (i Import) Handle(ctx context.Context) error {
	if ctx.Value(attempt{}) == 1 {
		return errors.New("the file is not there yet")
	}
	return nil
}

type attempt struct{}

// A layer of the worker's Runner is around every job that it runs.
func Example_middleware() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()
	if _, err := q.Push(ctx, Import{File: "prices.csv"}, queue.Backoff(0)); err != nil {
		log.Fatal(err)
	}

	report := func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			result := next(context.WithValue(ctx, attempt{}, e.Attempt), e)
			fmt.Printf("%s, attempt %d: %v\n", e.JobType, e.Attempt, result.Kind())
			return result
		}
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Import]())
	if err != nil {
		log.Fatal(err)
	}
	runner := &job.Runner{Middleware: []job.Middleware{report}, Logger: slog.New(slog.DiscardHandler)}
	if _, err := queue.NewWorker(q, handlers, queue.Runner(runner)).WorkUntilEmpty(ctx, 0); err != nil {
		log.Fatal(err)
	}
	// Output:
	// import, attempt 1: retry
	// import, attempt 2: success
}
