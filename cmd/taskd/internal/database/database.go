// Package database opens the database of a queue that flags, environment and config file name.
package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// A Target is the database that settings name.
type Target struct {
	settings *settings.Reader
	dsn      string
	tables   sqlqueue.Tables
}

// NewTarget returns the target of the flags that AddFlags adds. Open wants that r has read them.
func NewTarget(r *settings.Reader) *Target { return &Target{settings: r} }

// AddFlags adds the flags that name a database and its tables.
func (at *Target) AddFlags(flags *pflag.FlagSet) {
	text := func(p *string, name, usage string) { settings.Add(flags, (*settings.Text)(p), "", name, usage) }
	text(&at.dsn, settings.DSN, "the database (default: an SQLite file)")
	text(&at.tables.Prefix, "table-prefix", "put before the names of all tables (default: nothing)")
	text(&at.tables.Jobs, "jobs-table", "name of the table of jobs, without the prefix (default: jobs)")
	text(&at.tables.Failed, "failed-table", "name of the table of dead letters, without the prefix (default: failed_jobs)")
}

// A DB is an open database with current tables.
type DB struct {
	Queue   *queue.Queue
	Applied int // migrations that Open applied

	sql     *sql.DB
	dialect sqlqueue.Dialect
	tables  sqlqueue.Tables
	close   func() error
}

// Close closes the connections.
func (db *DB) Close() error { return db.close() }

// Open connects and updates the tables.
func (at *Target) Open(ctx context.Context) (*DB, error) {
	s, err := at.source()
	if err != nil {
		return nil, err
	}
	db, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if db.Applied, err = migrated(ctx, db); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func (at *Target) source() (source, error) {
	config, err := at.settings.Queue()
	if err != nil {
		return source{}, err
	}
	tables := sqlqueue.Tables{
		Prefix: at.tables.Prefix,
		Jobs:   cmp.Or(at.tables.Jobs, config.JobsTable),
		Failed: cmp.Or(at.tables.Failed, config.FailedTable),
	}
	if err := tables.Check(); err != nil {
		return source{}, err
	}
	dsn, by, err := at.find(config)
	return source{dsn: dsn, by: by, tables: tables}, err
}

// find returns the name of the database and where it stands. A connection in the environment overrides a dsn in the file.
func (at *Target) find(config queue.Config) (dsn, by string, err error) {
	if at.dsn != "" && !(at.settings.FromFile(settings.DSN) && settings.ConnectionInEnvironment()) {
		return at.dsn, strings.TrimRight(at.settings.From(settings.DSN), " ="), nil
	}
	return at.settings.Connection(config)
}

// A source is a named database and the tables of a queue in it.
type source struct {
	dsn, by string // by: where dsn stands
	tables  sqlqueue.Tables
}

// connectLimit is how long a database may take to answer.
const connectLimit = 15 * time.Second

func (s source) connect(ctx context.Context) (*DB, error) {
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	db, err := s.reach(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the database does not answer within %s: %w", connectLimit, err)
	}
	return db, err
}

func (s source) reach(ctx context.Context) (*DB, error) {
	scheme, rest, _ := strings.Cut(s.dsn, ":")
	if scheme != "sqlite" && scheme != "" {
		if err := checkURL(s.dsn); err != nil {
			return nil, cli.Usagef("%s: %w", s.by, err)
		}
	}
	switch scheme {
	case "":
		path, err := defaultFile()
		if err != nil {
			return nil, err
		}
		return s.openSQLite(ctx, path)
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" || path == ":memory:" {
			return nil, cli.Usagef("%s: want the path of a file behind sqlite:", s.by)
		}
		return s.openSQLite(ctx, path)
	case "postgres", "postgresql":
		return s.openPostgres(ctx)
	default:
		return s.openMySQL(ctx)
	}
}

// checkURL checks the URL of a server's database. Its errors do not show dsn, which may contain a password.
func checkURL(dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil && (strings.HasPrefix(dsn, "postgres") || strings.HasPrefix(dsn, "mysql:")) {
		return errors.New("it is no URL; a password must have % and / as %25 and %2F")
	}
	if err != nil || !slices.Contains([]string{"postgres", "postgresql", "mysql"}, u.Scheme) || !strings.Contains(dsn, "://") {
		return errors.New("want sqlite:/path/file.db, postgres://… or mysql://…")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errors.New("want a port from 1 to 65535")
		}
	}
	if u.Scheme == "mysql" && strings.Trim(u.Path, "/") == "" {
		return errors.New("want the name of a database behind the host: mysql://host/database")
	}
	return nil
}

// defaultFile returns the SQLite file of a user who names no database, and makes its folder.
func defaultFile() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", cli.Usagef("no place for the default database, give --dsn or TASKD_DSN: %w", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	dir := filepath.Join(data, "taskd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the default database: %w", err)
	}
	return filepath.Join(dir, "queue.db"), nil
}

func (s source) openSQLite(ctx context.Context, path string) (*DB, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Normal)
	if err != nil {
		return nil, err
	}
	store, err := db.Store(sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Queue: queue.New(store), sql: db.Write, dialect: sqlqueue.SQLite, tables: s.tables, close: db.Close}, nil
}

func (s source) openPostgres(ctx context.Context) (*DB, error) {
	db, err := postgres.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	store, err := db.Store(s.tables)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Queue: queue.New(store), sql: db.SQL, dialect: sqlqueue.PostgreSQL, tables: s.tables, close: db.Close}, nil
}

func (s source) openMySQL(ctx context.Context) (*DB, error) {
	db, err := mysql.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	store, err := mysql.Store(db, sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Queue: queue.New(store), sql: db, dialect: sqlqueue.MySQL, tables: s.tables, close: db.Close}, nil
}

// migrated applies the migrations that the database lacks. If two processes do so at once, one can fail because of the
// other: it tries again.
func migrated(ctx context.Context, db *DB) (applied int, err error) {
	const tries = 5
	for try := 1; ; try++ {
		pending, err := migrate.Pending(ctx, db.sql, db.dialect, db.tables)
		if err == nil && !pending {
			return applied, nil
		}
		if err == nil {
			if applied, err = migrate.Up(ctx, db.sql, db.dialect, db.tables); err == nil {
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
