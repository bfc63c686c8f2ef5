package sqlite

import (
	"context"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// A Store keeps jobs in an SQLite file. It wakes its workers after any process has written to the
// file. It is safe for concurrent use.
type Store struct {
	*sqlqueue.Store
	waker waker
}

// Store returns the store in the file, for queue.New. The option sqlqueue.WithTables names its
// tables.
func (db *DB) Store(opts ...sqlqueue.Option) (*Store, error) {
	s, err := sqlqueue.New(db.Write, sqlqueue.SQLite, append([]sqlqueue.Option{sqlqueue.WithReader(db.Read)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Store{s, waker{db.Read}}, nil
}

// Wait implements backend.Waker: it calls wake after any process has written to the file.
func (s *Store) Wait(ctx context.Context, wake func(queue string)) error {
	return s.waker.wait(ctx, wake)
}
