package sqlite

import (
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A Store keeps jobs in the file. It wakes its workers when any process has written there.
type Store struct {
	*sqlqueue.Store
	waker
}

// Store returns the store in the file, for queue.New.
func (db *DB) Store(opts ...sqlqueue.Option) (*Store, error) {
	s, err := sqlqueue.New(db.Write, sqlqueue.SQLite, append([]sqlqueue.Option{sqlqueue.WithReader(db.Read)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Store{s, waker{db.Read}}, nil
}
