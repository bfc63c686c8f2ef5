// Package database opens the database of a queue that flags, environment and config file name.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/open"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A Target is the database that settings name.
type Target struct {
	settings *settings.Reader
	dsn      string
	tables   sqlqueue.Tables
}

// NewTarget returns the target of the flags that AddFlags adds. r must have read them before Open.
func NewTarget(r *settings.Reader) *Target { return &Target{settings: r} }

// AddFlags adds the flags that name a database and its tables.
func (at *Target) AddFlags(flags *pflag.FlagSet) {
	text := func(p *string, name, usage string) { settings.Add(flags, (*settings.Text)(p), "", name, usage) }
	text(&at.dsn, settings.DSN, "the database (default: an SQLite file)")
	text(&at.tables.Prefix, "table-prefix", "put before the names of all tables (default: nothing)")
	text(&at.tables.Jobs, "jobs-table", "name of the table of jobs, without the prefix (default: jobs)")
	text(&at.tables.Failed, "failed-table",
		"name of the table of dead letters, without the prefix (default: failed_jobs)")
}

// A DB is an open database with current tables.
type DB struct {
	Queue     *queue.Queue
	Applied   int // migrations that Open applied
	io.Closer     // of the connections
}

// Open connects and updates the tables.
func (at *Target) Open(ctx context.Context) (*DB, error) {
	config, err := at.settings.Queue()
	if err != nil {
		return nil, err
	}
	tables := sqlqueue.Tables{
		Prefix: at.tables.Prefix,
		Jobs:   cmp.Or(at.tables.Jobs, config.JobsTable),
		Failed: cmp.Or(at.tables.Failed, config.FailedTable),
	}
	if err := tables.Check(); err != nil {
		return nil, err
	}
	dsn, err := at.find(config)
	if err != nil {
		return nil, err
	}
	db, err := open.Open(ctx, dsn, open.Tables(tables))
	if err != nil {
		return nil, err
	}
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Queue: queue.New(db.Store), Applied: applied, Closer: db}, nil
}

// find returns the name of the database. A connection in the environment overrides a dsn in the
// file.
func (at *Target) find(config queue.Config) (dsn string, err error) {
	by := strings.TrimRight(at.settings.From(settings.DSN), " =")
	dsn = at.dsn
	if dsn == "" || at.settings.FromFile(settings.DSN) && settings.ConnectionInEnvironment() {
		if dsn, by, err = at.settings.Connection(config); err != nil {
			return "", err
		}
	}
	if dsn == "" {
		return defaultDatabase()
	}
	if err := open.Check(dsn); err != nil {
		return "", cli.Usagef("%s: %w", by, err)
	}
	return dsn, nil
}

// defaultDatabase returns the SQLite file of a user who names no database, and makes its folder.
func defaultDatabase() (dsn string, err error) {
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
	return "sqlite:" + filepath.Join(dir, "queue.db"), nil
}
