package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// Call is a job that prints its name.
type Call struct{ Name string }

func (Call) JobType() string { return "call" }

func (c Call) Handle(ctx context.Context) error {
	fmt.Println(c.Name)
	return nil
}

// Within a queue workers take jobs of higher priority first, and of one priority the job that has
// been due longest. A delayed job waits until it is due.
func Example_delayAndPriority() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()

	push := func(name string, opts ...queue.PushOption) {
		if _, err := q.Push(ctx, Call{name}, opts...); err != nil {
			log.Fatal(err)
		}
	}
	push("tomorrow", queue.Delay(24*time.Hour), queue.Priority(3))
	push("newsletter", queue.Priority(0))
	push("mail")
	push("alarm", queue.Priority(3))

	handlers, err := job.NewRegistry(queue.HandlerFor[Call]())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.NewWorker(q, handlers, queue.Concurrency(1)).WorkUntilEmpty(ctx, 0); err != nil {
		log.Fatal(err)
	}
	counts, err := q.Counts(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("delayed:", counts.Delayed)
	// Output:
	// alarm
	// mail
	// newsletter
	// delayed: 1
}
