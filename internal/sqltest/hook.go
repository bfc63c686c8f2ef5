// Package sqltest puts a hook around each statement that a program sends to a database.
package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
)

// A Call is one statement. "BEGIN" and "COMMIT" are statements too.
type Call struct {
	Statement string
	Args      []driver.NamedValue
	Tx        *Tx   // nil: the statement is a transaction of its own
	Rows      int64 // after it: how many it returned or, returning none, changed
}

// A Tx is one transaction.
type Tx struct {
	Note any // the hooks' own

	tx  *sql.Tx
	ctx context.Context
}

// Hooks are called around each statement; either may be nil.
type Hooks struct {
	// Before returns the statement's error, and then it is not sent.
	Before func(context.Context, *Call) error
	// After is called when the statement was carried out, and what it returned was read. Its error
	// goes in place of the answer, as if that had been lost on its way.
	After func(context.Context, *Call) error
}

// Wrap is db with hooks. Closing it leaves db open.
func Wrap(db *sql.DB, h Hooks) *sql.DB { return sql.OpenDB(connector{db, h}) }

type connector struct {
	db    *sql.DB
	hooks Hooks
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{connector: c}, nil }
func (c connector) Driver() driver.Driver                        { return nil }

func (c connector) before(ctx context.Context, call *Call) error {
	if c.hooks.Before == nil {
		return nil
	}
	return c.hooks.Before(ctx, call)
}

func (c connector) after(ctx context.Context, call *Call) error {
	if c.hooks.After == nil {
		return nil
	}
	return c.hooks.After(ctx, call)
}

// A conn holds a real connection in a transaction only.
type conn struct {
	connector
	tx *Tx
}

func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("sqltest: statements are not prepared")
}
func (c *conn) Close() error              { return nil }
func (c *conn) Begin() (driver.Tx, error) { return nil, errors.New("sqltest: needs a context") }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	call := &Call{Statement: "BEGIN", Tx: &Tx{ctx: ctx}}
	if err := c.before(ctx, call); err != nil {
		return nil, err
	}
	tx, err := c.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.IsolationLevel(opts.Isolation)})
	if err != nil {
		return nil, err
	}
	call.Tx.tx = tx
	if err := c.after(ctx, call); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	c.tx = call.Tx
	return ending{c}, nil
}

// An ending ends the transaction of its connection.
type ending struct{ c *conn }

func (e ending) Commit() error {
	t := e.c.tx
	e.c.tx = nil
	call := &Call{Statement: "COMMIT", Tx: t}
	if err := e.c.before(t.ctx, call); err != nil {
		return errors.Join(err, t.tx.Rollback())
	}
	if err := t.tx.Commit(); err != nil {
		return err
	}
	return e.c.after(t.ctx, call)
}

func (e ending) Rollback() error {
	t := e.c.tx
	e.c.tx = nil
	return t.tx.Rollback()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	call := &Call{Statement: statement, Args: args, Tx: c.tx}
	if err := c.before(ctx, call); err != nil {
		return nil, err
	}
	var result sql.Result
	var err error
	if c.tx != nil {
		result, err = c.tx.tx.ExecContext(ctx, statement, plain(args)...)
	} else {
		result, err = c.db.ExecContext(ctx, statement, plain(args)...)
	}
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); err == nil {
		call.Rows = n
	}
	return result, c.after(ctx, call)
}

// QueryContext implements driver.QueryerContext. It reads the whole answer: until then a statement
// of its own is not committed.
func (c *conn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	call := &Call{Statement: statement, Args: args, Tx: c.tx}
	if err := c.before(ctx, call); err != nil {
		return nil, err
	}
	var rows *sql.Rows
	var err error
	if c.tx != nil {
		rows, err = c.tx.tx.QueryContext(ctx, statement, plain(args)...)
	} else {
		rows, err = c.db.QueryContext(ctx, statement, plain(args)...)
	}
	if err != nil {
		return nil, err
	}
	all, err := read(rows)
	if err != nil {
		return nil, err
	}
	call.Rows = int64(len(all.values))
	return all, c.after(ctx, call)
}

func plain(args []driver.NamedValue) (values []any) {
	for _, a := range args {
		values = append(values, a.Value)
	}
	return values
}

// An answer is the rows of a query, all read.
type answer struct {
	columns []string
	values  [][]driver.Value
}

func read(rows *sql.Rows) (a *answer, err error) {
	defer rows.Close()
	a = &answer{}
	if a.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	for rows.Next() {
		row := make([]driver.Value, len(a.columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = (*any)(&row[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		a.values = append(a.values, row)
	}
	return a, rows.Err()
}

func (a *answer) Columns() []string { return a.columns }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(dest []driver.Value) error {
	if len(a.values) == 0 {
		return io.EOF
	}
	copy(dest, a.values[0])
	a.values = a.values[1:]
	return nil
}
