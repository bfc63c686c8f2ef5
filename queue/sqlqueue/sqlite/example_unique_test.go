package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/taskd-go/task/queue"
)

// Reindex is a job. One live job for each shop is enough.
type Reindex struct{ Shop string }

func (Reindex) JobType() string                  { return "search.reindex" }
func (Reindex) Handle(ctx context.Context) error { return nil }

// Of the live jobs of one type, only one can have a unique key. Each push says what happens if
// another job has it.
func Example_unique() {
	ctx := context.Background()
	q, _, done := openQueue(ctx)
	defer done()

	first, err := q.Push(ctx, Reindex{"berlin"}, queue.Unique("berlin", queue.TakenReject))
	if err != nil {
		log.Fatal(err)
	}
	_, err = q.Push(ctx, Reindex{"berlin"}, queue.Unique("berlin", queue.TakenReject))
	var taken *queue.DuplicateError
	fmt.Println("rejected:", errors.As(err, &taken) && taken.Existing == first)

	second, err := q.Push(ctx, Reindex{"berlin"}, queue.Unique("berlin", queue.TakenExisting))
	fmt.Println("the same job:", second == first, err)

	third, err := q.Push(ctx, Reindex{"berlin"}, queue.Unique("berlin", queue.TakenReplace))
	fmt.Println("another job in its place:", third != first, err)
	// Output:
	// rejected: true
	// the same job: true <nil>
	// another job in its place: true <nil>
}
