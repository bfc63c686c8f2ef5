// Package postgres opens a PostgreSQL database for a queue. Its store wakes workers by LISTEN and
// NOTIFY.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// A DB is a pool of connections to a database. It is safe for concurrent use.
type DB struct {
	SQL    *sql.DB
	config *pgx.ConnConfig
}

// Open connects to the database that dsn names, a connection string or a postgres:// URL. Its
// errors do not show the password. The pool has at most 16 connections. If dsn leads to PgBouncer
// in transaction mode, it must have default_query_exec_mode=exec; see also Store.
func Open(ctx context.Context, dsn string) (*DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err) // pgx leaves the password out
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	db.SetConnMaxIdleTime(5 * time.Minute)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("postgres: %w", oneLine{err})
	}
	return &DB{SQL: db, config: config}, nil
}

// A oneLine is an error of pgx in one line. pgx writes a line for each address that it tried.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n\t", " ") }
func (e oneLine) Unwrap() error { return e.error }

// A Store keeps jobs in a PostgreSQL database. Its pushes notify a channel, and it wakes its
// workers when another process has notified there. Each worker listens on a connection of its own
// outside the pool. Through PgBouncer in transaction mode that does not work: use sqlqueue.New,
// whose workers look at intervals. A Store is safe for concurrent use.
type Store struct {
	*sqlqueue.Store
	waker waker
}

// Store returns the store in the tables t of the database, for queue.New.
func (db *DB) Store(t sqlqueue.Tables, opts ...sqlqueue.Option) (*Store, error) {
	own := []sqlqueue.Option{sqlqueue.WithTables(t), sqlqueue.WithNotify(Channel(t))}
	s, err := sqlqueue.New(db.SQL, sqlqueue.PostgreSQL, append(own, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Store{s, waker{db.config, Channel(t)}}, nil
}

// Close closes the pool. Call it after the workers have returned.
func (db *DB) Close() error { return db.SQL.Close() }

// Channel returns the name of the channel that pushes into these tables notify.
func Channel(t sqlqueue.Tables) string { return t.Prefix + cmp.Or(t.Jobs, "jobs") + "_queue" }

// Wait implements backend.Waker: it calls wake for each notification of a push.
func (s *Store) Wait(ctx context.Context, wake func(queue string)) error {
	return s.waker.wait(ctx, wake)
}

type waker struct {
	config  *pgx.ConnConfig
	channel string
}

func (w waker) wait(ctx context.Context, wake func(queue string)) error {
	conn, err := pgx.ConnectConfig(ctx, w.config.Copy())
	if err != nil {
		return fmt.Errorf("postgres: listen: %w", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{w.channel}.Sanitize()); err != nil {
		return fmt.Errorf("postgres: listen: %w", err)
	}
	wake("") // for pushes that came before
	for {
		n, err := conn.WaitForNotification(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("postgres: listen: %w", err)
		}
		wake(n.Payload)
	}
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx)
}
