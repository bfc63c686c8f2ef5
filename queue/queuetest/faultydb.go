package queuetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/taskd-go/task/internal/sqlhook"
)

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
