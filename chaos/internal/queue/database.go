package queue

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// A source names a database and the tables in it.
type source struct {
	dsn    string // sqlite:PATH, postgres://… or mysql://…
	tables queue.Tables
	wrap   func(*sql.DB) *sql.DB // wraps the connections that write; nil: none
}

// A database is an open one.
type database struct {
	queue   *queue.Queue
	waker   queue.Waker // nil: none
	sql     *sql.DB
	dialect queue.Dialect
	tables  queue.Tables
	close   func() error
}

func (db *database) Close() error { return db.close() }

// open connects, and brings the tables up to date.
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
	return nil, cli.Usagef("--dsn: want sqlite:/path/file.db, postgres://… or mysql://…")
}

func (s source) openSQLite(ctx context.Context, path string) (*database, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Normal)
	if err != nil {
		return nil, err
	}
	opened, waker := *db, db.Waker()
	db.Write = s.wrapped(db.Write)
	q, err := db.Queue(queue.WithTables(s.tables))
	return &database{queue: q, waker: waker, sql: opened.Write, dialect: queue.SQLite, tables: s.tables, close: opened.Close}, err
}

func (s source) openPostgres(ctx context.Context) (*database, error) {
	db, err := postgres.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	opened := *db
	db.SQL = s.wrapped(db.SQL)
	q, err := db.Queue(s.tables)
	return &database{queue: q, waker: db.Waker(s.tables), sql: opened.SQL, dialect: queue.PostgreSQL, tables: s.tables, close: opened.Close}, err
}

func (s source) openMySQL(ctx context.Context) (*database, error) {
	db, err := mysql.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	q, err := mysql.Queue(s.wrapped(db), queue.WithTables(s.tables))
	return &database{queue: q, sql: db, dialect: queue.MySQL, tables: s.tables, close: db.Close}, err
}

// wrapped returns the connections that write. Closing db is enough: its wrapper holds nothing.
func (s source) wrapped(db *sql.DB) *sql.DB {
	if s.wrap == nil {
		return db
	}
	return s.wrap(db)
}

// migrate makes the tables. If two processes do so at once, one of them can fail: it tries again.
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
