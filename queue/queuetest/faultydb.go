package queuetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/taskd-go/task/internal/sqlhook"
)

// faulty is db with a hook before each statement, "BEGIN" and "COMMIT" too. What the hook returns is the statement's
// error, and it did not reach the database.
func faulty(s *stage, db *sql.DB, hook func(ctx context.Context, statement string) error) *sql.DB {
	return hooked(s, db, func(ctx context.Context, c *sqlhook.Call) error { return hook(ctx, c.Statement) })
}

// Spy is db with a look at each statement before it is sent.
func Spy(t testing.TB, db *sql.DB, look func(statement string, args []driver.NamedValue)) *sql.DB {
	return hooked(t, db, func(_ context.Context, c *sqlhook.Call) error {
		look(c.Statement, c.Args)
		return nil
	})
}

func hooked(t testing.TB, db *sql.DB, before func(context.Context, *sqlhook.Call) error) *sql.DB {
	wrapped := sqlhook.Wrap(db, sqlhook.Hooks{Before: before})
	t.Cleanup(func() { wrapped.Close() })
	return wrapped
}
