// Command shop shows a job's life, from its push in the transaction of an order to dead letters and
// their replay, over SQLite and partly in a pool of worker processes. docs/jobs.md explains it.
//
//	go run ./examples/recipes/shop
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	// The pool comes first: a worker process does not come further than its start.
	thumbnails, err := startPool(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thumbnails.close(ctx)) }()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, q, err := open(ctx, filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, step := range []func() error{
		func() error { return placeOrder(ctx, db.Write, q, 1) },
		func() error { return push(ctx, q) },
		func() error { return work(ctx, q) },
		func() error { return bury(ctx, q) },
		func() error { return replay(ctx, q) },
		func() error { return thumbnails.work(ctx, q) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// open opens the database and makes the queue's tables in it.
func open(ctx context.Context, path string) (*sqlite.DB, *queue.Queue, error) {
	db, err := sqlite.Open(ctx, path, sqlite.DurabilityNormal)
	if err != nil {
		return nil, nil, err
	}
	if _, err := migrate.Up(ctx, db.Write, sqlqueue.SQLite, sqlqueue.Tables{}); err != nil {
		return nil, nil, err
	}
	if _, err := db.Write.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		return nil, nil, err
	}
	store, err := db.Store()
	if err != nil {
		return nil, nil, err
	}
	return db, queue.New(store), nil
}

// placeOrder stores an order and the job that follows from it, or neither.
func placeOrder(ctx context.Context, db *sql.DB, q *queue.Queue, id int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", id); err != nil {
		return err
	}
	if _, err := q.Push(ctx, Receipt{OrderID: id}, sqlqueue.In(tx)); err != nil {
		return err
	}
	return tx.Commit()
}

// push shows the options of a push.
func push(ctx context.Context, q *queue.Queue) error {
	shipment, err := job.New("order.ship", Shipment{OrderID: 1}, nil, job.DefaultRetryPolicy())
	if err != nil {
		return err
	}
	if _, err := q.PushEnvelope(ctx, shipment, queue.Priority(3)); err != nil { // before jobs of 2, 1 and 0
		return err
	}
	if _, err := q.Push(ctx, Receipt{OrderID: 2}, queue.Delay(10*time.Millisecond)); err != nil {
		return err
	}
	// While this job is not finished, a second push with the key returns the first one's id.
	id, err := q.Push(ctx, Invoice{OrderID: 1}, queue.Unique("invoice:1", queue.TakenExisting))
	if err != nil {
		return err
	}
	again, err := q.Push(ctx, Invoice{OrderID: 1}, queue.Unique("invoice:1", queue.TakenExisting))
	if err != nil {
		return err
	}
	fmt.Println("pushed once:", id == again)
	return nil
}

// work runs what was pushed.
func work(ctx context.Context, q *queue.Queue) error {
	c := &carrier{answers: map[int][]error{1: {errClosed, errBusy}}}
	handlers, err := job.NewRegistry(queue.HandlerFor[Receipt](), queue.HandlerFor[Invoice](), ship(c))
	if err != nil {
		return err
	}
	locks := q.Locks()                                // shared by all programs that use this database
	wait := middleware.OnBusy(job.Defer(time.Second)) // in place of the layer's own answer, a skip
	runner := &job.Runner{
		Timeout: time.Minute,
		Middleware: []job.Middleware{
			middleware.RateLimited(locks, 100, time.Second),
			middleware.WithoutOverlapping(locks, middleware.Key("order:{OrderID}"), wait),
		},
	}
	worker := queue.NewWorker(q, handlers, queue.Runner(runner), queue.Concurrency(4))
	return workAll(ctx, q, worker)
}

// bury pushes jobs that die: one at once, one after its three tries.
func bury(ctx context.Context, q *queue.Queue) error {
	setMail(true)
	if _, err := q.PushMany(ctx, []queue.Job{Receipt{OrderID: -1}, Invoice{OrderID: 3}}); err != nil {
		return err
	}
	if err := workMail(ctx, q); err != nil {
		return err
	}
	for letter, err := range q.Failed(ctx, queue.Filter{}) {
		if err != nil {
			return err
		}
		fmt.Printf("dead: %s, %s, attempts %d: %s\n", letter.Type, letter.Reason, letter.Attempts, letter.Error)
	}
	return nil
}

// replay sends the invoices again, after the mail server has come back.
func replay(ctx context.Context, q *queue.Queue) error {
	setMail(false)
	n, err := q.RetryAll(ctx, queue.Filter{Types: []string{"order.invoice"}, Reasons: []job.Reason{job.ReasonFailed}})
	if err != nil {
		return err
	}
	fmt.Println("replayed:", n)
	return workMail(ctx, q)
}

func workMail(ctx context.Context, q *queue.Queue) error {
	handlers, err := job.NewRegistry(queue.HandlerFor[Receipt](), queue.HandlerFor[Invoice]())
	if err != nil {
		return err
	}
	return workAll(ctx, q, queue.NewWorker(q, handlers))
}

// workAll runs jobs until none is left, delayed ones and further attempts included.
func workAll(ctx context.Context, q *queue.Queue, worker *queue.Worker) error {
	for {
		if _, err := worker.WorkUntilEmpty(ctx, 0); err != nil {
			return err
		}
		left, err := q.Size(ctx, "")
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
