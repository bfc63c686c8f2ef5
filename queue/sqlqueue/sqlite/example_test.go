package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// Welcome is a job. Its exported fields are stored as JSON.
type Welcome struct{ UserID int }

func (Welcome) JobType() string { return "mail.welcome" }

func (w Welcome) Handle(ctx context.Context) error {
	fmt.Println("welcome, user", w.UserID)
	return nil
}

// A program opens a file, makes the tables, pushes a job and runs it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db, err := sqlite.Open(ctx, filepath.Join(dir, "queue.db"), sqlite.DurabilityNormal)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := migrate.Up(ctx, db.Write, sqlqueue.SQLite, sqlqueue.Tables{}); err != nil {
		log.Fatal(err)
	}
	store, err := db.Store()
	if err != nil {
		log.Fatal(err)
	}

	q := queue.New(store)
	if _, err := q.Push(ctx, Welcome{UserID: 7}); err != nil {
		log.Fatal(err)
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Welcome]())
	if err != nil {
		log.Fatal(err)
	}
	n, err := queue.NewWorker(q, handlers).WorkUntilEmpty(ctx, 0) // a service calls Work
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("jobs:", n)
	// Output:
	// welcome, user 7
	// jobs: 1
}
