package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/taskd-go/task/chaos/internal/dbserver"
)

// A fixture is a database that chaos tests.
type fixture struct {
	name     string
	dir      string                  // for the files of its workloads
	source   func(dir string) source // returns the database for a workload with its files in dir
	prefix   string                  // of all tables
	remains  bool                    // the database outlives the run, so the tables must be removed
	server   *dbserver.Server        // nil: chaos may kill none
	noServer string                  // why
	parallel int                     // so many workloads at once
}

// The kinds of database, as --on names them.
const (
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
	kindMariaDB  = "mariadb"

	kindGiven = "given" // by --dsn
)

var allKinds = kinds{kindSQLite, kindPostgres, kindMariaDB}

// openFixture makes a database of a kind with its files in dir, a new folder, or uses the one of
// --dsn.
func openFixture(ctx context.Context, kind, dsn, dir string) (*fixture, error) {
	// A server finds its own folder through this one.
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	f := &fixture{dir: dir, parallel: 2 * len(steps)}
	switch kind {
	case kindGiven:
		f.name, f.remains = "the database of --dsn", true
		f.noServer = "chaos does not kill the server of --dsn; without --dsn it starts its own"
		f.prefix = "chaos_" + strings.ToLower(rand.Text()[:8]) + "_"
		f.source = func(string) source { return source{dsn: dsn} }
		if !strings.HasPrefix(dsn, kindSQLite+":") {
			f.parallel = 5 // other programs need connections of the server too
		}
		return f, nil
	case kindSQLite:
		f.name, f.noServer = "SQLite, its own file", "SQLite has no server; the worker is the process that writes"
		f.source = func(dir string) source { return source{dsn: "sqlite:" + filepath.Join(dir, "queue.db")} }
		return f, nil
	}
	return f, f.startServer(ctx, kind)
}

func (f *fixture) startServer(ctx context.Context, kind string) (err error) {
	create := dbserver.NewPostgres
	if kind == kindMariaDB {
		create = dbserver.NewMariaDB
	}
	if f.server, err = create(filepath.Join(f.dir, "server")); err != nil {
		return err
	}
	f.name = f.server.Name + ", its own server"
	f.source = func(string) source { return source{dsn: f.server.DSN} }
	if err := f.restart(ctx); err != nil {
		return err
	}
	if kind != kindMariaDB {
		return nil
	}
	db, err := f.source("").connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	// The database of the first DSN belongs to the server.
	if _, err := db.SQL.ExecContext(ctx, "CREATE DATABASE chaos"); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.server.DSN = strings.TrimSuffix(f.server.DSN, "mysql") + "chaos"
	return nil
}

// restart starts the server and waits until it answers.
func (f *fixture) restart(ctx context.Context) error {
	return f.server.Start(ctx, func(ctx context.Context) error {
		db, err := f.source("").connect(ctx)
		if err != nil {
			return err
		}
		return db.Close()
	})
}

// close kills the server. The files go with the folder of the run.
func (f *fixture) close() {
	if f.server != nil {
		f.server.Kill()
	}
}
