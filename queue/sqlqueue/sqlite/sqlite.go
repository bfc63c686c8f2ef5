// Package sqlite opens an SQLite file for a queue: in WAL mode, with one connection that writes and
// a pool that reads.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// A DB is an open SQLite file. Several processes may have the same file open. It is safe for
// concurrent use.
type DB struct {
	// Write has one connection: while a transaction is open, other statements on Write wait. Its
	// transactions begin with BEGIN IMMEDIATE.
	Write *sql.DB
	Read  *sql.DB // a pool of connections that cannot write
}

// A Durability says what a commit survives.
type Durability string

// What a commit survives.
const (
	// DurabilityNormal, the default: a commit survives a crash of the process. A power failure may
	// undo the last commits.
	DurabilityNormal Durability = "NORMAL"
	DurabilityFull   Durability = "FULL" // it survives a power failure too; each commit waits for the disk
)

// Open opens the file at path, or makes it if its folder exists, and checks that it can be written.
// "" as d means DurabilityNormal. A statement that has to wait for a writing process fails after 10
// s.
func Open(ctx context.Context, path string, d Durability) (*DB, error) {
	if path == "" {
		return nil, errors.New("sqlite: path must not be empty")
	}
	if path == ":memory:" { // each connection would have its own database
		return nil, errors.New("sqlite: a queue needs a file, and :memory: is none")
	}
	if d == "" {
		d = DurabilityNormal
	}
	if d != DurabilityNormal && d != DurabilityFull {
		return nil, fmt.Errorf("sqlite: durability %q must be %s or %s", d, DurabilityNormal, DurabilityFull)
	}
	write, err := open(path, "synchronous("+string(d)+")", "immediate")
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	write.SetConnMaxLifetime(0)
	if err := ping(ctx, write); err != nil {
		write.Close()
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	read, err := open(path, "query_only(1)", "deferred")
	if err != nil {
		write.Close()
		return nil, err
	}
	read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	return &DB{Write: write, Read: read}, nil
}

// ping makes the first connection. Two processes that change a new file to WAL mode do not wait for
// each other: one gets SQLITE_BUSY at once, so ping tries again.
func ping(ctx context.Context, db *sql.DB) error {
	for end := time.Now().Add(busy); ; {
		err := db.PingContext(ctx)
		if err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY") || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// busy is how long a statement waits for the lock of another process.
const busy = 10 * time.Second

// open puts the pragmas into the data source name: the driver runs them on each new connection.
func open(path, pragma, begin string) (*sql.DB, error) {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	name.RawQuery = url.Values{
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()), "journal_mode(WAL)", pragma},
		"_txlock": {begin},
	}.Encode()
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	return db, nil
}

// Close closes both pools. Call it after the workers have returned.
func (db *DB) Close() error { return errors.Join(db.Read.Close(), db.Write.Close()) }
