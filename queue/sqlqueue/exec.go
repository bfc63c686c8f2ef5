package sqlqueue

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A runner of statements is a *sql.DB or a *sql.Tx.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) text(statement string) string {
	if text, ok := s.texts.Load(statement); ok {
		return text.(string)
	}
	text := s.d.rebind(s.fill.Replace(statement))
	if !s.d.inlines() {
		s.texts.Store(statement, text)
	}
	return text
}

func (s *Store) exec(ctx context.Context, x runner, statement string, args ...any) (sql.Result, error) {
	text := s.text(statement)
	if stmt := s.prepared(ctx, x, text); stmt != nil {
		result, err := stmt.ExecContext(ctx, args...)
		return result, s.explained(err)
	}
	result, err := x.ExecContext(ctx, text, args...)
	return result, s.explained(err)
}

// each runs a query and calls scan for each row.
func (s *Store) each(ctx context.Context, x runner, statement string, args []any, scan func(*sql.Rows) error) error {
	text := s.text(statement)
	var rows *sql.Rows
	var err error
	if stmt := s.prepared(ctx, x, text); stmt != nil {
		rows, err = stmt.QueryContext(ctx, args...)
	} else {
		rows, err = x.QueryContext(ctx, text, args...)
	}
	if err != nil {
		return s.explained(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return s.explained(rows.Err())
}

// idsOf returns the ids that a query selects.
func (s *Store) idsOf(ctx context.Context, x runner, statement string, args []any) (ids []int64, err error) {
	err = s.each(ctx, x, statement, args, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// now returns the database's time.
func (s *Store) now(ctx context.Context, x runner) (ms int64, err error) {
	err = s.each(ctx, x, "SELECT {now}", nil, func(rows *sql.Rows) error { return rows.Scan(&ms) })
	return ms, err
}

// prepared returns the prepared statement for x, or nil if the caller must send the text.
func (s *Store) prepared(ctx context.Context, x runner, text string) *sql.Stmt {
	if !s.d.prepares() {
		return nil
	}
	tx, inTx := x.(*sql.Tx)
	if !inTx && x != s.db {
		return nil
	}
	found, ok := s.stmts.Load(text)
	if !ok {
		if inTx {
			return nil // the transaction has the only connection
		}
		stmt, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			return nil // sending the text returns the same error
		}
		if found, ok = s.stmts.LoadOrStore(text, stmt); ok {
			stmt.Close()
		}
	}
	if inTx {
		return tx.StmtContext(ctx, found.(*sql.Stmt))
	}
	return found.(*sql.Stmt)
}

func (s *Store) explained(err error) error {
	if err != nil && s.d.missing(err) {
		return fmt.Errorf("queue: %w: %w", ErrSchema, err)
	}
	return err
}

const (
	txTries = 10
	txPause = 10 * time.Millisecond
)

// inTx runs fn in a transaction, and again if the database says that another try may work. fn must
// not keep anything of an earlier try.
func (s *Store) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return s.again(ctx, func() error { return s.onceInTx(ctx, fn) })
}

// again runs do up to txTries times, until it succeeds or returns an error that is not transient.
func (s *Store) again(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == txTries || !s.d.transient(err) {
			return err
		}
		s.retries.Add(1)
		pause := time.Duration(rand.Int64N(int64(txPause) * int64(try)))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (s *Store) onceInTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, s.d.tx())
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after a commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// change runs "verb WHERE cond" and returns the ids of the rows that it changed. Call it in a
// transaction.
func (s *Store) change(
	ctx context.Context, x runner, verb string, verbArgs []any, cond string, condArgs []any,
) (ids []int64, err error) {
	if s.d.returning() {
		return s.idsOf(ctx, x, verb+" WHERE "+cond+" RETURNING id", slices.Concat(verbArgs, condArgs))
	}
	// FOR UPDATE reads committed rows, and keeps others from changing them until the transaction
	// ends.
	ids, err = s.idsOf(ctx, x, "SELECT id FROM {jobs} WHERE "+cond+" FOR UPDATE", condArgs)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	in, inArgs := s.d.ids("id", ids)
	_, err = s.exec(ctx, x, verb+" WHERE "+in, slices.Concat(verbArgs, inArgs)...)
	return ids, err
}
