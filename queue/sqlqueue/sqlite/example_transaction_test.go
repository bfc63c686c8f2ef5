package sqlite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// Receipt is a job that must run if and only if its order is stored.
type Receipt struct{ OrderID int64 }

func (Receipt) JobType() string                  { return "mail.receipt" }
func (Receipt) Handle(ctx context.Context) error { return nil }

// A push inside a transaction is a part of it: the job and the order are stored together or not at
// all.
func Example_transaction() {
	ctx := context.Background()
	q, db, done := openQueue(ctx)
	defer done()
	if _, err := db.Write.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)"); err != nil {
		log.Fatal(err)
	}

	order := func(item string, commit bool) {
		tx, err := db.Write.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer tx.Rollback()
		result, err := tx.ExecContext(ctx, "INSERT INTO orders (item) VALUES (?)", item)
		if err != nil {
			log.Fatal(err)
		}
		id, _ := result.LastInsertId()
		if _, err := q.Push(ctx, Receipt{OrderID: id}, sqlqueue.In(tx), queue.On("mail")); err != nil {
			log.Fatal(err)
		}
		if commit {
			if err := tx.Commit(); err != nil {
				log.Fatal(err)
			}
		}
	}
	order("a lamp", false)
	order("a table", true)

	size, err := q.Size(ctx, "mail")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("receipts to send:", size)
	// Output: receipts to send: 1
}
