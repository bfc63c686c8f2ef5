package queue

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// A source names a database and the tables in it.
type source struct {
	dsn    string // sqlite:PATH, postgres://… or mysql://…
	tables sqlqueue.Tables
	wrap   func(*sql.DB) *sql.DB // wraps the connections that write; nil: none
}

// A database is an open connection pool with its queue.
type database struct {
	queue   *queue.Queue
	sql     *sql.DB
	dialect sqlqueue.Dialect
	tables  sqlqueue.Tables
	close   func() error
}

func (db *database) Close() error { return db.close() }

// open connects, and makes the tables.
func (s source) open(ctx context.Context) (*database, error) {
	db, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// connectLimit is how long a connection to a database may take.
const connectLimit = 15 * time.Second

func (s source) connect(ctx context.Context) (*database, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	scheme, rest, _ := strings.Cut(s.dsn, ":")
	switch scheme {
	case "sqlite":
		return s.openSQLite(ctx, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		return s.openPostgres(ctx)
	case "mysql":
		return s.openMySQL(ctx)
	}
	return nil, checkDSN(s.dsn)
}

// checkDSN refuses a DSN of an unknown kind.
func checkDSN(dsn string) error {
	for _, known := range []string{"sqlite:", "postgres:", "postgresql:", "mysql:"} {
		if strings.HasPrefix(dsn, known) {
			return nil
		}
	}
	return cli.Usagef("--dsn: want sqlite:/path/file.db, postgres://… or mysql://…")
}

func (s source) openSQLite(ctx context.Context, path string) (*database, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Normal)
	if err != nil {
		return nil, err
	}
	opened := *db
	db.Write = s.wrapped(db.Write)
	store, err := db.Store(sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &database{queue: queue.New(store), sql: opened.Write, dialect: sqlqueue.SQLite, tables: s.tables, close: opened.Close}, nil
}

func (s source) openPostgres(ctx context.Context) (*database, error) {
	db, err := postgres.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	opened := *db
	db.SQL = s.wrapped(db.SQL)
	store, err := db.Store(s.tables)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &database{queue: queue.New(store), sql: opened.SQL, dialect: sqlqueue.PostgreSQL, tables: s.tables, close: opened.Close}, nil
}

func (s source) openMySQL(ctx context.Context) (*database, error) {
	db, err := mysql.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	store, err := mysql.Store(s.wrapped(db), sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{queue: queue.New(store), sql: db, dialect: sqlqueue.MySQL, tables: s.tables, close: db.Close}, nil
}

// wrapped returns the connections that write. Closing db is enough: its wrapper holds nothing.
func (s source) wrapped(db *sql.DB) *sql.DB {
	if s.wrap == nil {
		return db
	}
	return s.wrap(db)
}

// migrate makes the tables. If two processes do so at once, one of them can fail, so it tries again.
func (db *database) migrate(ctx context.Context) error {
	const tries = 5
	for try := 1; ; try++ {
		_, err := migrate.Up(ctx, db.sql, db.dialect, db.tables)
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		cli.Pause(ctx, time.Duration(try)*100*time.Millisecond)
	}
}
