package main

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

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// A target says which database is meant.
type target struct {
	dsn    string
	flag   *pflag.Flag // that of dsn
	tables sqlqueue.Tables
	file   *configFile
}

// addFlags adds the flags that every command has.
func (at *target) addFlags(flags *pflag.FlagSet) {
	add(flags, (*word)(&at.dsn), "", dsnFlag, "the database (default: an SQLite file)")
	at.flag = flags.Lookup(dsnFlag)
	add(flags, (*word)(&at.tables.Prefix), "", "table-prefix", "put before the names of all tables (default: nothing)")
	add(flags, (*word)(&at.tables.Jobs), "", "jobs-table", "name of the table of jobs, without the prefix (default: jobs)")
	add(flags, (*word)(&at.tables.Failed), "", "failed-table", "the same of dead letters (default: failed_jobs)")
}

// A database is an open one, with the tables in it.
type database struct {
	queue   *queue.Queue
	sql     *sql.DB
	dialect sqlqueue.Dialect
	tables  sqlqueue.Tables
	applied int // migrations, by the opening
	close   func() error
}

func (db *database) Close() error { return db.close() }

// open connects, and brings the tables up to date.
func (at *target) open(ctx context.Context) (*database, error) {
	s, err := at.source()
	if err != nil {
		return nil, err
	}
	return s.open(ctx)
}

// source is what flags, environment and file say.
func (at *target) source() (source, error) {
	settings, err := at.file.settings()
	if err != nil {
		return source{}, err
	}
	tables := sqlqueue.Tables{
		Prefix: at.tables.Prefix,
		Jobs:   cmp.Or(at.tables.Jobs, settings.JobsTable),
		Failed: cmp.Or(at.tables.Failed, settings.FailedTable),
	}
	if err := tables.Check(); err != nil {
		return source{}, err
	}
	dsn, by, err := at.find(settings)
	return source{dsn: dsn, by: by, tables: tables}, err
}

// find is the name of the database, and who said so. What stands in the environment goes before the file.
func (at *target) find(settings queue.Config) (dsn, by string, err error) {
	inFile := at.flag.Annotations[fileSays] != nil
	if at.dsn != "" && (!inFile || os.Getenv(connectionVariable) == "") {
		return at.dsn, strings.TrimRight(saidBy(at.flag), " ="), nil
	}
	if settings.Connection == "" {
		return "", "", nil
	}
	dsn, ok := at.file.connections[settings.Connection]
	if !ok {
		by := at.file.by(connectionVariable, "queue.drivers.database.connection")
		return "", "", usagef("%s%q: want a name from the section [connections] of the config file", by, settings.Connection)
	}
	return dsn, at.file.path + ": " + connectionsAt + settings.Connection, nil
}

// A source is a database by its name, and what of it is meant.
type source struct {
	dsn, by string // by: who said so
	tables  sqlqueue.Tables
}

// open connects, and brings the tables up to date.
func (s source) open(ctx context.Context) (*database, error) {
	db, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if db.applied, err = migrated(ctx, db); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// connectLimit bounds the way to a database that does not answer.
const connectLimit = 15 * time.Second

func (s source) connect(ctx context.Context) (*database, error) {
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	db, err := s.reach(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the database does not answer within %s: %w", connectLimit, err)
	}
	return db, err
}

func (s source) reach(ctx context.Context) (*database, error) {
	scheme, rest, _ := strings.Cut(s.dsn, ":")
	if scheme != "sqlite" && scheme != "" {
		if err := checkURL(s.dsn); err != nil {
			return nil, usagef("%s: %w", s.by, err)
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
			return nil, usagef("%s: want the path of a file behind sqlite:", s.by)
		}
		return s.openSQLite(ctx, path)
	case "postgres", "postgresql":
		return s.openPostgres(ctx)
	default:
		return s.openMySQL(ctx)
	}
}

// checkURL refuses what names no server's database. Its errors do not show the text, which may hold a password.
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

// defaultFile is where the jobs of a user are who named no database.
func defaultFile() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usagef("no place for the default database, give --dsn or TASKD_DSN: %w", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	dir := filepath.Join(data, "taskd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the default database: %w", err)
	}
	return filepath.Join(dir, "queue.db"), nil
}

func (s source) openSQLite(ctx context.Context, path string) (*database, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Normal)
	if err != nil {
		return nil, err
	}
	store, err := db.Store(sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{queue: queue.New(store), sql: db.Write, dialect: sqlqueue.SQLite, tables: s.tables, close: db.Close}, nil
}

func (s source) openPostgres(ctx context.Context) (*database, error) {
	db, err := postgres.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	store, err := db.Store(s.tables)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{queue: queue.New(store), sql: db.SQL, dialect: sqlqueue.PostgreSQL, tables: s.tables, close: db.Close}, nil
}

func (s source) openMySQL(ctx context.Context) (*database, error) {
	db, err := mysql.Open(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	store, err := mysql.Store(db, sqlqueue.WithTables(s.tables))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{queue: queue.New(store), sql: db, dialect: sqlqueue.MySQL, tables: s.tables, close: db.Close}, nil
}

// migrated applies what the database lacks. Where two do so at once, one can fail for the other's sake; it
// looks again.
func migrated(ctx context.Context, db *database) (applied int, err error) {
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
