package sqlite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// Report is a job.
type Report struct{ Month string }

func (Report) JobType() string { return "report" }

func (r Report) Handle(ctx context.Context) error {
	fmt.Println("report for", r.Month)
	return nil
}

// Workers take no jobs from a paused queue until it is resumed.
func Example_pause() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()
	if _, err := q.Push(ctx, Report{Month: "May"}, queue.On("reports")); err != nil {
		log.Fatal(err)
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Report]())
	if err != nil {
		log.Fatal(err)
	}
	worker := queue.NewWorker(q, handlers, queue.Queues("default,reports"))

	if err := q.Pause(ctx, "reports"); err != nil {
		log.Fatal(err)
	}
	took, err := worker.ProcessOne(ctx)
	fmt.Println("while paused:", took, err)
	if err := q.Resume(ctx, "reports"); err != nil {
		log.Fatal(err)
	}
	took, err = worker.ProcessOne(ctx)
	fmt.Println("resumed:", took, err)
	// Output:
	// while paused: false <nil>
	// report for May
	// resumed: true <nil>
}

// Programs that share a queue park the jobs that they do not know, so that they stay for another
// program.
func Example_park() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()
	id, err := q.Push(ctx, Report{Month: "June"})
	if err != nil {
		log.Fatal(err)
	}
	none, err := job.NewRegistry() // the other program has no handler for it
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.NewWorker(q, none, queue.OnUnknown(queue.UnknownPark)).ProcessOne(ctx); err != nil {
		log.Fatal(err)
	}
	record, err := q.Inspect(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Job.State, "with", record.Job.Attempts, "attempts")
	// Output: delayed with 0 attempts
}
