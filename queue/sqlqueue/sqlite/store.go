package sqlite

import (
	"context"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// A Store keeps jobs in the file. It wakes its workers when any process has written there.
type Store struct {
	*sqlqueue.Store
	waker waker
}

// Store returns the store in the file, for queue.New.
func (db *DB) Store(opts ...sqlqueue.Option) (*Store, error) {
	s, err := sqlqueue.New(db.Write, sqlqueue.SQLite, append([]sqlqueue.Option{sqlqueue.WithReader(db.Read)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Store{s, waker{db.Read}}, nil
}

// Wait implements backend.Waker: it calls wake when any process has written to the file.
func (s *Store) Wait(ctx context.Context, wake func(queue string)) error {
	return s.waker.wait(ctx, wake)
}
