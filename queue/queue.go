package queue

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/job"
)

// A Queue is jobs in a database, or, from NewSync, jobs that run at once. It holds no goroutine and needs no Close;
// its methods are safe for concurrent use.
type Queue struct {
	options
	db    *sql.DB
	read  *sql.DB
	d     dialect
	names names
	fill  *strings.Replacer // puts names and the clock into a statement

	texts   sync.Map // statement as written → as sent, where there are few
	stmts   sync.Map // statement as sent → *sql.Stmt, where they are prepared
	retries atomic.Int64
	bell    bell
	notify  debounce

	sync *syncDriver // not nil: the sync driver
}

// An Option is an option of New and NewSync.
type Option func(*options)

type options struct {
	tables  Tables
	queue   string
	policy  job.RetryPolicy
	readers *sql.DB
	clock   string
	channel string
	runner  *job.Runner
	logger  *slog.Logger
}

// WithTables gives the tables other names.
func WithTables(t Tables) Option { return func(o *options) { o.tables = t } }

// DefaultQueue is where jobs go for which On names no queue; without it "default".
func DefaultQueue(name string) Option { return func(o *options) { o.queue = name } }

// WithPolicy gives jobs that do not say so themselves their number of attempts; without it 5. With NewSync it is
// the retry policy.
func WithPolicy(p job.RetryPolicy) Option { return func(o *options) { o.policy = p } }

// ReadFrom lets what only reads (Counts, List, Failed, Inspect) use another pool of connections to the same database:
// with SQLite, where writing has one connection, reads need not wait for it.
func ReadFrom(db *sql.DB) Option { return func(o *options) { o.readers = db } }

// Clock is an SQL expression for the time in UTC milliseconds, in place of the database's own clock: for tests.
func Clock(expr string) Option { return func(o *options) { o.clock = expr } }

// NotifyOn lets pushes to PostgreSQL tell a LISTEN channel of it, with the queue's name and at most once in 100 ms for
// each queue, outside of transactions and inside; queue/sqlqueue/postgres listens there. Other databases have no such thing.
func NotifyOn(channel string) Option { return func(o *options) { o.channel = channel } }

// WithLogger is where the queue writes what it cannot return; without it slog.Default().
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// New is the queue in db. It does no I/O: a database without the tables shows at the first call, as ErrSchema.
//
// With SQLite db must have one connection, transactions that begin with BEGIN IMMEDIATE, and a busy time-out where other
// processes have the file open, as queue/sqlqueue/sqlite opens it.
func New(db *sql.DB, d Dialect, opts ...Option) (*Queue, error) {
	q := &Queue{options: newOptions(opts), db: db, d: d.impl()}
	if db == nil {
		return nil, &ConfigError{"db", nil, "must not be nil"}
	}
	if q.d == nil {
		return nil, &ConfigError{"dialect", d, "must be SQLite, PostgreSQL or MySQL"}
	}
	var err error
	if q.names, err = q.tables.names(); err != nil {
		return nil, err
	}
	if d != PostgreSQL {
		q.channel = ""
	}
	if q.clock == "" {
		q.clock = q.d.now()
	}
	q.fill = strings.NewReplacer("{jobs}", q.names.jobs, "{failed}", q.names.failed, "{control}", q.names.control,
		"{locks}", q.names.locks, "{holds}", q.names.holds, "{now}", q.clock)
	q.read = q.readers
	if q.read == nil {
		q.read = db
	}
	return q, nil
}

func newOptions(opts []Option) options {
	o := options{queue: job.DefaultQueue}
	for _, set := range opts {
		set(&o)
	}
	if o.queue == "" {
		o.queue = job.DefaultQueue
	}
	if o.logger == nil {
		o.logger = slog.Default()
	}
	return o
}

// Retries is how many transactions were tried again after a deadlock or a lock that was not to be had.
func (q *Queue) Retries() int64 { return q.retries.Load() }

// A runner of statements is a *sql.DB or a *sql.Tx.
type sqlRunner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (q *Queue) text(statement string) string {
	if text, ok := q.texts.Load(statement); ok {
		return text.(string)
	}
	text := q.d.rebind(q.fill.Replace(statement))
	if !q.d.inlines() {
		q.texts.Store(statement, text)
	}
	return text
}

func (q *Queue) exec(ctx context.Context, x sqlRunner, statement string, args ...any) (sql.Result, error) {
	text := q.text(statement)
	if stmt := q.prepared(ctx, x, text); stmt != nil {
		result, err := stmt.ExecContext(ctx, args...)
		return result, q.explained(err)
	}
	result, err := x.ExecContext(ctx, text, args...)
	return result, q.explained(err)
}

// each runs a query and calls scan for each row.
func (q *Queue) each(ctx context.Context, x sqlRunner, statement string, args []any, scan func(*sql.Rows) error) error {
	text := q.text(statement)
	var rows *sql.Rows
	var err error
	if stmt := q.prepared(ctx, x, text); stmt != nil {
		rows, err = stmt.QueryContext(ctx, args...)
	} else {
		rows, err = x.QueryContext(ctx, text, args...)
	}
	if err != nil {
		return q.explained(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return q.explained(rows.Err())
}

// idsOf runs a query for ids.
func (q *Queue) idsOf(ctx context.Context, x sqlRunner, statement string, args []any) (ids []int64, err error) {
	err = q.each(ctx, x, statement, args, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// now is the database's time.
func (q *Queue) now(ctx context.Context, x sqlRunner) (ms int64, err error) {
	err = q.each(ctx, x, "SELECT {now}", nil, func(rows *sql.Rows) error { return rows.Scan(&ms) })
	return ms, err
}

// prepared is the statement for x, nil if it is to be sent as text.
func (q *Queue) prepared(ctx context.Context, x sqlRunner, text string) *sql.Stmt {
	if !q.d.prepares() {
		return nil
	}
	tx, inTx := x.(*sql.Tx)
	if !inTx && x != q.db {
		return nil
	}
	found, ok := q.stmts.Load(text)
	if !ok {
		if inTx {
			return nil // the one connection is taken
		}
		stmt, err := q.db.PrepareContext(ctx, text)
		if err != nil {
			return nil // running it says why
		}
		if found, ok = q.stmts.LoadOrStore(text, stmt); ok {
			stmt.Close()
		}
	}
	if inTx {
		return tx.StmtContext(ctx, found.(*sql.Stmt))
	}
	return found.(*sql.Stmt)
}

func (q *Queue) explained(err error) error {
	if err != nil && q.d.missing(err) {
		return fmt.Errorf("queue: %w: %w", ErrSchema, err)
	}
	return err
}

const (
	txTries = 10
	txPause = 10 * time.Millisecond
)

// inTx runs fn in a transaction, again when the database says that another try may work. fn must start afresh each
// time.
func (q *Queue) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return q.again(ctx, func() error { return q.onceInTx(ctx, fn) })
}

// again runs do until it fails for good or succeeds.
func (q *Queue) again(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == txTries || !q.d.transient(err) {
			return err
		}
		q.retries.Add(1)
		pause := time.Duration(rand.Int64N(int64(txPause) * int64(try)))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (q *Queue) onceInTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := q.db.BeginTx(ctx, q.d.tx())
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// change runs "verb WHERE cond" and returns the ids of the rows that it changed. It belongs into a transaction.
func (q *Queue) change(ctx context.Context, x sqlRunner, verb string, verbArgs []any, cond string, condArgs []any) (ids []int64, err error) {
	if q.d.returning() {
		return q.idsOf(ctx, x, verb+" WHERE "+cond+" RETURNING id", slices.Concat(verbArgs, condArgs))
	}
	// FOR UPDATE reads what is committed, and what it found stays as it is until the end of the transaction.
	ids, err = q.idsOf(ctx, x, "SELECT id FROM {jobs} WHERE "+cond+" FOR UPDATE", condArgs)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	in, inArgs := q.d.ids("id", ids)
	_, err = q.exec(ctx, x, verb+" WHERE "+in, slices.Concat(verbArgs, inArgs)...)
	return ids, err
}
