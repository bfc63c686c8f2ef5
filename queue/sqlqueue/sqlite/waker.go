package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// A waker wakes a worker when any process has written to the file. Without it a worker learns of another process's
// pushes when it looks the next time.
type waker struct{ read *sql.DB }

// gather is the pause after a wake-up: a commit is several writes, and a busy file has many commits.
const gather = time.Millisecond

// Wait implements backend.Waker. Every commit goes to the log beside the file first. It is there for as long as
// a connection is.
func (w waker) Wait(ctx context.Context, wake func(queue string)) error {
	var file string
	var tables int
	err := w.read.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file)
	if err == nil { // the first to read makes the log
		err = w.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables)
	}
	if err != nil {
		return fmt.Errorf("sqlite: watch the log: %w", err)
	}
	changes, err := watch(ctx, file+"-wal")
	if err != nil {
		return fmt.Errorf("sqlite: watch the log: %w", err)
	}
	defer changes.close()
	wake("") // for what came before
	for {
		err := changes.next()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("sqlite: watch the log: %w", err)
		}
		wake("")
		time.Sleep(gather)
	}
}
