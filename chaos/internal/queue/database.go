package queue

import (
	"context"
	"database/sql"
	"errors"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/open"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A source names a database and the tables in it.
type source struct {
	dsn    string // sqlite:PATH, postgres://… or mysql://…
	tables sqlqueue.Tables
	wrap   func(*sql.DB) *sql.DB // wraps the connections that write; nil: none
}

// A database is an open connection pool with its queue.
type database struct {
	queue *queue.Queue
	*open.DB
}

// open connects, and makes the tables.
func (s source) open(ctx context.Context) (*database, error) {
	db, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// connect connects to a database whose tables another process makes.
func (s source) connect(ctx context.Context) (*database, error) {
	if err := checkDSN(s.dsn); err != nil {
		return nil, err
	}
	options := []open.Option{open.Tables(s.tables)}
	if s.wrap != nil {
		options = append(options, open.Wrap(s.wrap))
	}
	db, err := open.Open(ctx, s.dsn, options...)
	if err != nil {
		return nil, err
	}
	return &database{queue: queue.New(db.Store), DB: db}, nil
}

// checkDSN refuses a DSN that names no database.
func checkDSN(dsn string) error {
	if err := open.Check(dsn); err != nil {
		return cli.Usagef("--dsn: %w", err)
	}
	return nil
}
