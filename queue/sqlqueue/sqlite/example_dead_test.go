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

// serverUp is what the job Charge depends on.
var serverUp bool

// Charge is a job that fails while a server is away.
type Charge struct{ Invoice int }

func (Charge) JobType() string { return "charge" }
func (Charge) Tries() int      { return 1 }

func (c Charge) Handle(ctx context.Context) error {
	if !serverUp {
		return errors.New("the server is away")
	}
	fmt.Println("charged invoice", c.Invoice)
	return nil
}

// A failed job without attempts left becomes a dead letter. It stays until it is retried or pruned.
func Example_deadLetters() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()
	serverUp = false
	if _, err := q.Push(ctx, Charge{Invoice: 12}); err != nil {
		log.Fatal(err)
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Charge]())
	if err != nil {
		log.Fatal(err)
	}
	worker := queue.NewWorker(q, handlers, queue.Runner(&job.Runner{Logger: slog.New(slog.DiscardHandler)}))
	if _, err := worker.WorkUntilEmpty(ctx, 0); err != nil {
		log.Fatal(err)
	}

	for letter, err := range q.Failed(ctx, queue.Filter{Types: []string{"charge"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s died of %q after %d attempt\n", letter.Type, letter.Error, letter.Attempts)
	}
	serverUp = true
	back, err := q.RetryAll(ctx, queue.Filter{Types: []string{"charge"}, Rate: 100})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent again:", back)
	if _, err := worker.WorkUntilEmpty(ctx, 0); err != nil {
		log.Fatal(err)
	}
	// Output:
	// charge died of "the server is away" after 1 attempt
	// sent again: 1
	// charged invoice 12
}
