// Package open opens the queue store that a URL names. It imports the drivers of all databases; a
// program that needs only one imports that package of queue/sqlqueue instead. These are the URLs:
//
//	sqlite:/path/file.db
//	postgres://user:password@host/database
//	mysql://user:password@host/database
package open

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/taskd-go/task/queue/backend"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// A DB is an open database with the store in it. It is safe for concurrent use.
type DB struct {
	Store   backend.Backend // for queue.New
	SQL     *sql.DB         // the connections that write, not wrapped by Wrap
	Dialect sqlqueue.Dialect
	Tables  sqlqueue.Tables

	close func() error
}

// An Option changes how Open opens a database.
type Option func(*options)

type options struct {
	tables sqlqueue.Tables
	wrap   func(*sql.DB) *sql.DB
}

// Tables sets the names of the queue's tables.
func Tables(t sqlqueue.Tables) Option { return func(o *options) { o.tables = t } }

// Wrap makes the store use what wrap returns for the connections that write, for example to make
// statements fail in a test. DB.Close closes the connections, and does not close what wrap
// returned.
func Wrap(wrap func(*sql.DB) *sql.DB) Option { return func(o *options) { o.wrap = wrap } }

// limit is how long a database may take to answer.
const limit = 15 * time.Second

// Open connects to the database that dsn names. It fails if the database does not answer within 15
// s. It does not check the tables: see Migrate. Errors do not show the password in dsn.
func Open(ctx context.Context, dsn string, opts ...Option) (*DB, error) {
	if err := Check(dsn); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	o := options{wrap: func(db *sql.DB) *sql.DB { return db }}
	for _, opt := range opts {
		opt(&o)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	db, err := connect(limited, dsn, o)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the database does not answer within %s: %w", limit, err)
	}
	return db, err
}

func connect(ctx context.Context, dsn string, o options) (*DB, error) {
	switch scheme(dsn) {
	case schemeSQLite:
		return connectSQLite(ctx, path(dsn), o)
	case schemeMySQL:
		return connectMySQL(ctx, dsn, o)
	default:
		return connectPostgres(ctx, dsn, o)
	}
}

func connectSQLite(ctx context.Context, path string, o options) (*DB, error) {
	db, err := sqlite.Open(ctx, path, sqlite.DurabilityNormal)
	if err != nil {
		return nil, err
	}
	wrapped := *db
	wrapped.Write = o.wrap(db.Write)
	store, err := wrapped.Store(sqlqueue.WithTables(o.tables))
	return opened(store, err, &DB{SQL: db.Write, Dialect: sqlqueue.SQLite, Tables: o.tables, close: db.Close})
}

func connectPostgres(ctx context.Context, dsn string, o options) (*DB, error) {
	db, err := postgres.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	wrapped := *db
	wrapped.SQL = o.wrap(db.SQL)
	store, err := wrapped.Store(o.tables)
	return opened(store, err, &DB{SQL: db.SQL, Dialect: sqlqueue.PostgreSQL, Tables: o.tables, close: db.Close})
}

func connectMySQL(ctx context.Context, dsn string, o options) (*DB, error) {
	db, err := mysql.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	store, err := mysql.Store(o.wrap(db), sqlqueue.WithTables(o.tables))
	return opened(store, err, &DB{SQL: db, Dialect: sqlqueue.MySQL, Tables: o.tables, close: db.Close})
}

// opened returns db with its store, or closes db and returns err.
func opened(store backend.Backend, err error, db *DB) (*DB, error) {
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.Store = store
	return db, nil
}

// Migrate makes or updates the tables, and returns how many migrations it applied. Several
// processes may migrate a database at the same time.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	const tries = 5 // if two processes migrate at the same time, one can fail
	for try := 1; ; try++ {
		pending, err := migrate.Pending(ctx, db.SQL, db.Dialect, db.Tables)
		if err == nil && !pending {
			return 0, nil
		}
		if err == nil {
			if applied, err = migrate.Up(ctx, db.SQL, db.Dialect, db.Tables); err == nil {
				return applied, nil
			}
		}
		if try == tries {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(time.Duration(try) * 100 * time.Millisecond):
		}
	}
}

// Close closes the connections. Stop the workers first.
func (db *DB) Close() error { return db.close() }
