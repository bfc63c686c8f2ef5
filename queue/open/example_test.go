package open_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/open"
)

type welcome struct{ UserID int }

func (welcome) JobType() string              { return "welcome" }
func (welcome) Handle(context.Context) error { return nil }

func Example() {
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := open.Open(ctx, "sqlite:"+filepath.Join(dir, "queue.db")) // often from the environment
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	q := queue.New(db.Store)
	if _, err := q.Push(ctx, welcome{UserID: 7}); err != nil {
		log.Fatal(err)
	}
	counts, err := q.Counts(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready:", counts.Ready)
	// Output: ready: 1
}
