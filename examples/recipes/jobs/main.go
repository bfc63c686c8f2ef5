// Command jobs pushes a job into a queue in an SQLite file and works the queue off until Ctrl-C.
// README.md shows it word for word.
//
//	go run ./examples/recipes/jobs
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// Welcome is a job. Its exported fields are stored as JSON.
type Welcome struct{ UserID int }

// JobType names the kind of job in the database.
func (Welcome) JobType() string { return "mail.welcome" }

// Handle runs the job. After an error it runs again, with a growing delay.
func (w Welcome) Handle(ctx context.Context) error {
	fmt.Println("welcome, user", w.UserID)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	db, err := sqlite.Open(ctx, "queue.db", sqlite.DurabilityNormal)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := migrate.Up(ctx, db.Write, sqlqueue.SQLite, sqlqueue.Tables{}); err != nil {
		return err
	}
	store, err := db.Store()
	if err != nil {
		return err
	}
	q := queue.New(store)
	if _, err := q.Push(ctx, Welcome{UserID: 7}, queue.Delay(time.Second)); err != nil {
		return err
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[Welcome]())
	if err != nil {
		return err
	}
	return queue.NewWorker(q, handlers).Work(ctx, 0) // 0: no limit; at ctx's end it finishes running jobs
}
