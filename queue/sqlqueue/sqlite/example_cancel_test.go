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

var exporting = make(chan struct{})

// Export is a job that runs until its context ends.
type Export struct{ Table string }

func (Export) JobType() string { return "export" }

func (Export) Handle(ctx context.Context) error {
	exporting <- struct{}{}
	<-ctx.Done()
	fmt.Println("cancelled:", errors.Is(context.Cause(ctx), queue.ErrCancelled))
	return ctx.Err()
}

// Cancel removes a job. If a worker runs it, the handler's context ends within about a second.
func Example_cancel() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()
	id, err := q.Push(ctx, Export{Table: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Export]())
	if err != nil {
		log.Fatal(err)
	}
	worker := queue.NewWorker(q, handlers, queue.Runner(&job.Runner{Logger: slog.New(slog.DiscardHandler)}))
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, 1) }()

	<-exporting
	if err := q.Cancel(ctx, id); err != nil {
		log.Fatal(err)
	}
	fmt.Println("worker:", <-ended)
	_, err = q.Inspect(ctx, id)
	fmt.Println("gone:", errors.Is(err, queue.ErrNotFound))
	// Output:
	// cancelled: true
	// worker: <nil>
	// gone: true
}
