package sqlqueue

import (
	"database/sql"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/taskd-go/task/queue/backend"
)

// ErrSchema says that the queue's tables are missing in the database or are too old. It wraps
// backend.ErrSetup.
var ErrSchema error = schemaError{}

type schemaError struct{}

func (schemaError) Error() string {
	return "the queue's tables are missing or old; apply them with: taskd queue migrate"
}
func (schemaError) Unwrap() error { return backend.ErrSetup }

// A Store keeps jobs in the tables of one database. It implements backend.Backend. It starts no
// goroutine and has no Close: close the *sql.DB after the workers have returned. It is safe for
// concurrent use.
type Store struct {
	options
	db    *sql.DB
	read  *sql.DB
	d     dialect
	names names
	fill  *strings.Replacer // puts names and the clock into a statement

	texts   sync.Map // statement as written → as sent, if the dialect does not inline lists
	stmts   sync.Map // statement as sent → *sql.Stmt, if the dialect prepares
	retries atomic.Int64
	claims  atomic.Int64 // the number in the last token
	notify  debounce
}

var (
	_ backend.Backend  = (*Store)(nil)
	_ backend.TxPusher = (*Store)(nil)
	_ backend.Control  = (*Store)(nil)
	_ backend.Admin    = (*Store)(nil)
	_ backend.Locker   = (*Store)(nil)
)

// An Option changes a Store; see New.
type Option func(*options)

type options struct {
	tables  Tables
	readers *sql.DB
	clock   string
	channel string
}

// WithTables sets the names of the tables.
func WithTables(t Tables) Option { return func(o *options) { o.tables = t } }

// WithReader sets another pool of connections to the same database for statements that only read,
// such as those of Counts, List, Failed, Inspect and Orders. It must read what was just committed,
// so it cannot be a replica. With SQLite, where one connection writes, reads then need not wait for
// it.
func WithReader(db *sql.DB) Option { return func(o *options) { o.readers = db } }

// WithClock sets an SQL expression for the time in UTC milliseconds, in place of the database's own
// clock. It is for tests.
func WithClock(expr string) Option { return func(o *options) { o.clock = expr } }

// WithNotify makes pushes notify a LISTEN channel of PostgreSQL, with the queue's name as the
// payload. For each queue it notifies at most once in 100 ms, and pushes in transactions are
// counted apart. sqlqueue/postgres listens on the channel. Other databases ignore the option.
func WithNotify(channel string) Option { return func(o *options) { o.channel = channel } }

// New returns the store in db. It does no I/O: if the tables are missing, the first call that needs
// them fails with ErrSchema.
//
// With SQLite db must have one connection and begin transactions with BEGIN IMMEDIATE, and a busy
// time-out if other processes have the file open. sqlqueue/sqlite opens it so.
func New(db *sql.DB, d Dialect, opts ...Option) (*Store, error) {
	s := &Store{db: db, d: d.impl()}
	for _, set := range opts {
		set(&s.options)
	}
	if db == nil {
		return nil, &backend.ConfigError{Option: "db", Value: nil, Rule: "must not be nil"}
	}
	if s.d == nil {
		return nil, &backend.ConfigError{Option: "dialect", Value: d, Rule: "must be SQLite, PostgreSQL or MySQL"}
	}
	var err error
	if s.names, err = s.tables.names(); err != nil {
		return nil, err
	}
	if d != PostgreSQL {
		s.channel = ""
	}
	if s.clock == "" {
		s.clock = s.d.now()
	}
	s.fill = strings.NewReplacer("{jobs}", s.names.jobs, "{failed}", s.names.failed, "{control}", s.names.control,
		"{locks}", s.names.locks, "{holds}", s.names.holds, "{now}", s.clock)
	s.read = s.readers
	if s.read == nil {
		s.read = db
	}
	return s, nil
}

// Name implements backend.Backend: sqlite, postgres or mysql.
func (s *Store) Name() string { return s.d.name() }

// Can implements backend.Backend.
func (s *Store) Can() backend.Capabilities {
	return backend.Capabilities{Delay: true, Priority: true, Unique: true, Atomic: true}
}

// Retries returns how many transactions were tried again because of a deadlock or a lock of another
// transaction.
func (s *Store) Retries() int64 { return s.retries.Load() }
