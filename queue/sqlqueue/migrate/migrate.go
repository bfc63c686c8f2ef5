// Package migrate makes and updates the tables of a queue with goose.
package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// Up applies the migrations that db lacks, and returns how many it applied. If two programs call it
// at the same time, one of them can fail; it may try again.
func Up(ctx context.Context, db *sql.DB, d sqlqueue.Dialect, t sqlqueue.Tables) (applied int, err error) {
	p, err := provider(db, d, t)
	if err != nil {
		return 0, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return len(results), fmt.Errorf("migrate: %w", err)
	}
	return len(results), nil
}

// Down removes the queue's tables, with all jobs and dead letters.
func Down(ctx context.Context, db *sql.DB, d sqlqueue.Dialect, t sqlqueue.Tables) error {
	p, err := provider(db, d, t)
	if err != nil {
		return err
	}
	if _, err := p.DownTo(ctx, 0); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := db.ExecContext(ctx, "DROP TABLE "+migrated(d, t)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Pending reports whether db lacks migrations that Up would apply.
func Pending(ctx context.Context, db *sql.DB, d sqlqueue.Dialect, t sqlqueue.Tables) (bool, error) {
	p, err := provider(db, d, t)
	if err != nil {
		return false, err
	}
	pending, err := p.HasPending(ctx)
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	return pending, nil
}

// migrated returns the name of goose's table as the database has it: PostgreSQL stores a name without
// quotes in lower case, and goose looks for it as it is written.
func migrated(d sqlqueue.Dialect, t sqlqueue.Tables) string {
	if d == sqlqueue.PostgreSQL {
		return strings.ToLower(t.Migrated())
	}
	return t.Migrated()
}

func provider(db *sql.DB, d sqlqueue.Dialect, t sqlqueue.Tables) (*goose.Provider, error) {
	dialects := map[sqlqueue.Dialect]database.Dialect{
		sqlqueue.SQLite:     database.DialectSQLite3,
		sqlqueue.PostgreSQL: database.DialectPostgres,
		sqlqueue.MySQL:      database.DialectMySQL,
	}
	store, err := database.NewStore(dialects[d], migrated(d, t))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider("", db, sqlqueue.Migrations(d, t), goose.WithStore(store),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return p, nil
}
