package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/migrate"
	"github.com/taskd-go/task/queue/sqlite"
)

type mail struct{ To string }

func (mail) JobType() string { return "mail" }
func (m mail) Handle(ctx context.Context) error {
	if m.To == "bad" {
		return errors.New("bad")
	}
	return nil
}

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "q.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q, _ := db.Queue()
	_, err = q.Push(ctx, mail{"x"})
	t.Log(err)
	n, err := migrate.Up(ctx, db.Write, queue.SQLite, queue.Tables{})
	t.Log(n, err)
	for _, to := range []string{"a", "bad", "b"} {
		id, err := q.Push(ctx, mail{to}, queue.Tries(2), queue.Backoff(0))
		t.Log(id, err)
	}
	reg, _ := job.NewRegistry(queue.HandlerFor[mail]())
	w := queue.NewWorker(q, reg)
	took, err := w.ProcessOne(ctx)
	t.Log(took, err)
	k, err := w.WorkUntilEmpty(ctx, 0)
	t.Log(k, err)
	for f, err := range q.Failed(ctx, queue.Filter{}) {
		t.Logf("%+v %v", f, err)
	}
	t.Log(q.Retry(ctx, "1"))
	for f, err := range q.List(ctx, "") {
		t.Logf("%+v %v", f, err)
	}
}
