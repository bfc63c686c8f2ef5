package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue/backend"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	runSuite(t, openSQLite(t))
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	runSuite(t, openPostgreSQL(t))
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	runSuite(t, openMySQL(t))
}

// databases are all that answer, each opened for the test that asks.
var databases = []struct {
	name string
	open func(t testing.TB) database
}{{"SQLite", openSQLite}, {"PostgreSQL", openPostgreSQL}, {"MySQL", openMySQL}}

func openSQLite(t testing.TB) database {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "queue.db"), sqlite.DurabilityNormal)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return migrated(t, database{
		SQL: db.Write, Read: db.Read, Dialect: sqlqueue.SQLite,
		Waking: func(opts ...sqlqueue.Option) (backend.Backend, error) { return db.Store(opts...) },
	})
}

func openPostgreSQL(t testing.TB) database {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	db, err := postgres.Open(ctx, postgresDSN())
	if err != nil {
		t.Skipf("NOT TESTED on PostgreSQL, which does not answer (.ci/services postgres starts it): %v", err)
	}
	t.Cleanup(func() { db.Close() })
	tables := sqlqueue.Tables{Prefix: prefix()}
	return migrated(t, database{
		SQL: db.SQL, Dialect: sqlqueue.PostgreSQL, Tables: tables, Channel: postgres.Channel(tables),
		Waking: func(opts ...sqlqueue.Option) (backend.Backend, error) { return db.Store(tables, opts...) },
	})
}

func openMySQL(t testing.TB) database {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	db, err := mysql.Open(ctx, mysqlDSN())
	if err != nil {
		t.Skipf("NOT TESTED on MySQL or MariaDB, which does not answer (.ci/services mariadb starts it): %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return migrated(t, database{SQL: db, Dialect: sqlqueue.MySQL, Tables: sqlqueue.Tables{Prefix: prefix()}})
}

func postgresDSN() string {
	return env("TASKD_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable")
}

func mysqlDSN() string { return env("TASKD_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/test") }

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// prefix keeps runs side by side apart.
func prefix() string {
	var b [5]byte
	rand.Read(b[:])
	return "t" + hex.EncodeToString(b[:]) + "_"
}

func migrated(t testing.TB, db database) database {
	_, err := migrate.Up(t.Context(), db.SQL, db.Dialect, db.Tables)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := migrate.Down(context.Background(), db.SQL, db.Dialect, db.Tables); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return db
}
