package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A ground is a database on which chaos runs.
type ground struct {
	name   string
	dir    string                  // ours, for everything that is a file
	source func(dir string) source // the database for a plot in dir
	prefix string                  // of all tables
	keeps  bool                    // it stays when we are gone, so that the tables must be removed
	server *server                 // nil: not ours to kill
	why    string                  // there is no server to kill
	wide   int                     // plots at once
}

// The kinds of database, as --on names them.
const (
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
	kindMariaDB  = "mariadb"

	kindGiven = "given" // by --dsn
)

var groundKinds = []string{kindSQLite, kindPostgres, kindMariaDB}

// errNoServer says that this machine has not what a server of our own needs.
var errNoServer = errors.New("no server program was found")

// openGround makes a database of a kind.
func openGround(ctx context.Context, kind, dir string) (*ground, error) {
	g := &ground{dir: dir, wide: 2 * len(chaosSteps)}
	if kind == kindSQLite {
		g.name, g.why = "SQLite, a file of its own", "SQLite has no server; the worker is the process that writes"
		g.source = func(dir string) source { return source{dsn: "sqlite:" + filepath.Join(dir, "queue.db")} }
		return g, nil
	}
	start := newPostgres
	if kind == kindMariaDB {
		start = newMariaDB
	}
	s, err := start()
	if err != nil {
		return nil, err
	}
	g.name, g.server = s.name+", a server of its own", s
	g.source = func(string) source { return source{dsn: s.dsn} }
	err = s.start(ctx)
	if err == nil && kind == kindMariaDB {
		err = s.createDatabase(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return g, nil
}

// givenGround is the database of --dsn.
func givenGround(given source, dir string) *ground {
	wide := 5 // a server's connections are not ours alone
	if strings.HasPrefix(given.dsn, kindSQLite+":") {
		wide = 2 * len(chaosSteps)
	}
	return &ground{
		name: "the database of --dsn", dir: dir, keeps: true, wide: wide,
		prefix: "chaos_" + strings.ToLower(rand.Text()[:8]) + "_",
		source: func(string) source { return given },
		why:    "the server of --dsn is not this command's to kill; without --dsn it starts servers of its own",
	}
}

func (g *ground) close() error {
	if g.server == nil {
		return nil
	}
	return g.server.close()
}

// plotDir is a folder for a ground.
func plotDir(root, kind string) (string, error) {
	dir := filepath.Join(root, kind)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("chaos: %w", err)
	}
	return dir, nil
}
