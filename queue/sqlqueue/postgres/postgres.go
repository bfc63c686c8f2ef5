// Package postgres opens a PostgreSQL database for a queue, and listens there for pushes.
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

// A DB is a pool of connections to a database.
type DB struct {
	SQL    *sql.DB
	config *pgx.ConnConfig
}

// Open connects to the database that a connection string or postgres:// URL names, or says why it
// cannot. The pool has at most 16 connections. Behind PgBouncer in transaction mode give it
// default_query_exec_mode=exec, and see Store.
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

// A oneLine is an error of pgx, which has a line for each address that it tried.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n\t", " ") }
func (e oneLine) Unwrap() error { return e.error }

// A Store keeps jobs in the database. Its pushes are announced on the channel of its tables, and it
// wakes its workers when it hears one there, on a connection of its own outside the pool. Behind
// PgBouncer in transaction mode use sqlqueue.New, whose workers look at intervals.
type Store struct {
	*sqlqueue.Store
	waker waker
}

// Store returns the store in tables of the database, for queue.New.
func (db *DB) Store(t sqlqueue.Tables, opts ...sqlqueue.Option) (*Store, error) {
	own := []sqlqueue.Option{sqlqueue.WithTables(t), sqlqueue.WithNotify(Channel(t))}
	s, err := sqlqueue.New(db.SQL, sqlqueue.PostgreSQL, append(own, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Store{s, waker{db.config, Channel(t)}}, nil
}

// Close closes the pool. Call it when no worker runs any more.
func (db *DB) Close() error { return db.SQL.Close() }

// Channel returns the name of the channel on which pushes into these tables are announced.
func Channel(t sqlqueue.Tables) string { return t.Prefix + cmp.Or(t.Jobs, "jobs") + "_queue" }

// Wait implements backend.Waker: it calls wake for the pushes that are announced.
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
	wake("") // for what came before
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
