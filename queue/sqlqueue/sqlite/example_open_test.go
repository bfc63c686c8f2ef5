package sqlite_test

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// openQueue opens a queue in a new file for an example.
func openQueue(ctx context.Context) (q *queue.Queue, db *sqlite.DB, done func()) {
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sqlite.Open(ctx, filepath.Join(dir, "queue.db"), sqlite.DurabilityNormal)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := migrate.Up(ctx, db.Write, sqlqueue.SQLite, sqlqueue.Tables{}); err != nil {
		log.Fatal(err)
	}
	store, err := db.Store()
	if err != nil {
		log.Fatal(err)
	}
	return queue.New(store), db, func() {
		db.Close()
		os.RemoveAll(dir)
	}
}
