package queuetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
)

// faulty is db with a hook before each statement, "BEGIN" and "COMMIT" too. What the hook returns is the statement's
// error, and it did not reach the database.
func faulty(s *stage, db *sql.DB, hook func(ctx context.Context, statement string) error) *sql.DB {
	return opened(s, faultyConnector{db, func(ctx context.Context, statement string, _ []driver.NamedValue) error {
		return hook(ctx, statement)
	}})
}

// Spy is db with a look at each statement before it is sent.
func Spy(t testing.TB, db *sql.DB, look func(statement string, args []driver.NamedValue)) *sql.DB {
	return opened(t, faultyConnector{db, func(_ context.Context, statement string, args []driver.NamedValue) error {
		look(statement, args)
		return nil
	}})
}

func opened(t testing.TB, c faultyConnector) *sql.DB {
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return db
}

type faultyConnector struct {
	db   *sql.DB
	hook func(ctx context.Context, statement string, args []driver.NamedValue) error
}

func (c faultyConnector) Connect(context.Context) (driver.Conn, error) {
	return &faultyConn{faultyConnector: c}, nil
}
func (c faultyConnector) Driver() driver.Driver { return nil }

// A faultyConn holds a real connection in a transaction only.
type faultyConn struct {
	faultyConnector
	tx *sql.Tx
}

func (c *faultyConn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("faulty: statements are not prepared")
}
func (c *faultyConn) Close() error              { return nil }
func (c *faultyConn) Begin() (driver.Tx, error) { return nil, errors.New("faulty: needs a context") }

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (_ driver.Tx, err error) {
	if err := c.hook(ctx, "BEGIN", nil); err != nil {
		return nil, err
	}
	c.tx, err = c.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.IsolationLevel(opts.Isolation)})
	return &faultyTx{c, ctx}, err
}

type faultyTx struct {
	c   *faultyConn
	ctx context.Context
}

func (t *faultyTx) Commit() error {
	if err := t.c.hook(t.ctx, "COMMIT", nil); err != nil {
		return errors.Join(err, t.Rollback())
	}
	defer func() { t.c.tx = nil }()
	return t.c.tx.Commit()
}

func (t *faultyTx) Rollback() error {
	defer func() { t.c.tx = nil }()
	return t.c.tx.Rollback()
}

func plain(args []driver.NamedValue) (values []any) {
	for _, a := range args {
		values = append(values, a.Value)
	}
	return values
}

func (c *faultyConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.hook(ctx, statement, args); err != nil {
		return nil, err
	}
	if c.tx != nil {
		return c.tx.ExecContext(ctx, statement, plain(args)...)
	}
	return c.db.ExecContext(ctx, statement, plain(args)...)
}

func (c *faultyConn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.hook(ctx, statement, args); err != nil {
		return nil, err
	}
	var rows *sql.Rows
	var err error
	if c.tx != nil {
		rows, err = c.tx.QueryContext(ctx, statement, plain(args)...)
	} else {
		rows, err = c.db.QueryContext(ctx, statement, plain(args)...)
	}
	if err != nil {
		return nil, err
	}
	columns, err := rows.Columns()
	return &faultyRows{rows, columns}, err
}

type faultyRows struct {
	rows    *sql.Rows
	columns []string
}

func (r *faultyRows) Columns() []string { return r.columns }
func (r *faultyRows) Close() error      { return r.rows.Close() }

func (r *faultyRows) Next(dest []driver.Value) error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	into := make([]any, len(dest))
	for i := range dest {
		into[i] = (*any)(&dest[i])
	}
	return r.rows.Scan(into...)
}
