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

	"github.com/taskd-go/task/queue/queuetest"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, openSQLite(t))
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, openPostgreSQL(t))
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, openMySQL(t))
}

// databases are all that answer, each opened for the test that asks.
var databases = []struct {
	name string
	open func(t testing.TB) queuetest.Database
}{{"SQLite", openSQLite}, {"PostgreSQL", openPostgreSQL}, {"MySQL", openMySQL}}

func openSQLite(t testing.TB) queuetest.Database {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "queue.db"), sqlite.Normal)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := db.Store()
	require.NoError(t, err)
	return migrated(t, queuetest.Database{SQL: db.Write, Read: db.Read, Dialect: sqlqueue.SQLite, Waker: store})
}

func openPostgreSQL(t testing.TB) queuetest.Database {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	db, err := postgres.Open(ctx, postgresDSN())
	if err != nil {
		t.Skipf("NOT TESTED on PostgreSQL, which does not answer (.ci/services postgres starts it): %v", err)
	}
	t.Cleanup(func() { db.Close() })
	tables := sqlqueue.Tables{Prefix: prefix()}
	store, err := db.Store(tables)
	require.NoError(t, err)
	return migrated(t, queuetest.Database{
		SQL: db.SQL, Dialect: sqlqueue.PostgreSQL, Tables: tables, Waker: store, Channel: postgres.Channel(tables),
	})
}

func openMySQL(t testing.TB) queuetest.Database {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	db, err := mysql.Open(ctx, mysqlDSN())
	if err != nil {
		t.Skipf("NOT TESTED on MySQL or MariaDB, which does not answer (.ci/services mariadb starts it): %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return migrated(t, queuetest.Database{SQL: db, Dialect: sqlqueue.MySQL, Tables: sqlqueue.Tables{Prefix: prefix()}})
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

func migrated(t testing.TB, db queuetest.Database) queuetest.Database {
	_, err := migrate.Up(t.Context(), db.SQL, db.Dialect, db.Tables)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := migrate.Down(context.Background(), db.SQL, db.Dialect, db.Tables); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return db
}
