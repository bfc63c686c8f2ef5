package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A waker wakes a worker after any process has written to the file. Without it a worker finds the
// pushes of other processes at its next look.
type waker struct{ read *sql.DB }

// gather is the pause after a wake-up: a commit is several writes, and a busy file has many
// commits.
const gather = time.Millisecond

var errGone = errors.New("it is gone")

// wait watches the write-ahead log beside the file, which every commit is written to first. The log
// exists as long as a connection does.
func (w waker) wait(ctx context.Context, wake func(queue string)) error {
	changes, err := w.watch(ctx)
	if err != nil {
		return fmt.Errorf("sqlite: watch the log: %w", err)
	}
	defer changes.Close()
	wake("") // for pushes that came before
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-changes.Errors:
			return fmt.Errorf("sqlite: watch the log: %w", err)
		case e := <-changes.Events:
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				return fmt.Errorf("sqlite: watch the log: %w", errGone)
			}
		}
		wake("")
		time.Sleep(gather)
	}
}

func (w waker) watch(ctx context.Context) (*fsnotify.Watcher, error) {
	var file string
	var tables int
	err := w.read.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file)
	if err == nil { // the first read makes the log
		err = w.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables)
	}
	if err != nil {
		return nil, err
	}
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := changes.AddWith(file + "-wal"); err != nil {
		return nil, errors.Join(err, changes.Close())
	}
	return changes, nil
}
