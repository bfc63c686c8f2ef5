package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// openSQLiteFile opens a file with the same pragmas as this project's queue, and with one
// connection, as River and goqite require.
func openSQLiteFile(place string) (*sql.DB, error) {
	const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	db, err := sql.Open("sqlite", "file:"+place+pragmas)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func openGoqite(ctx context.Context, place string) (session, error) {
	db, err := openSQLiteFile(place)
	if err != nil {
		return session{}, err
	}
	if err := goqiteTable(ctx, db); err != nil {
		return session{}, err
	}
	q := goqite.New(goqite.NewOpts{DB: db, Name: "default"})
	return session{
		push: func(ctx context.Context, n int) error {
			body, err := json.Marshal(benchJob{n, note})
			if err != nil {
				return err
			}
			_, err = jobs.Create(ctx, q, "nothing", goqite.Message{Body: body})
			return err
		},
		work: func(ctx context.Context, n int, began func()) (time.Time, error) {
			return goqiteWork(ctx, q, n, began), nil
		},
		clear: func(ctx context.Context) error { return empty(ctx, db, sqlqueue.SQLite, "goqite") },
		close: db.Close,
	}, nil
}

// goqiteTable creates goqite's table from the schema file in its source, as goqite documents.
func goqiteTable(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'goqite'").Scan(&n)
	if err != nil || n > 0 {
		return err
	}
	source, _ := runtime.FuncForPC(reflect.ValueOf(goqite.New).Pointer()).FileLine(0)
	schema, err := os.ReadFile(filepath.Join(filepath.Dir(source), "schema_sqlite.sql"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, strings.TrimSpace(string(schema)))
	return err
}

// goqiteWork stops the clock in the last handler, before goqite deletes that message.
func goqiteWork(ctx context.Context, q *goqite.Queue, n int, began func()) (end time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := jobs.NewRunner(jobs.NewRunnerOpts{Queue: q, Limit: 100})
	var seen atomic.Int64
	r.Register("nothing", func(_ context.Context, body []byte) error {
		began()
		var j benchJob
		if err := json.Unmarshal(body, &j); err != nil {
			return err
		}
		if seen.Add(1) == int64(n) {
			end = time.Now()
			cancel()
		}
		return nil
	})
	r.Start(ctx)
	return end
}
