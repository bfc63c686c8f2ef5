package main

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func (benchJob) JobType() string              { return "nothing" }
func (benchJob) Handle(context.Context) error { return nil }

func openQueueSQLite(ctx context.Context, place string) (session, error) {
	db, err := sqlite.Open(ctx, place, sqlite.Normal)
	if err != nil {
		return session{}, err
	}
	store, err := db.Store()
	if err != nil {
		return session{}, err
	}
	return sessionOf(ctx, queue.New(store), db.Write, sqlqueue.SQLite, 100, db.Close)
}

func openQueuePostgres(ctx context.Context, place string) (session, error) {
	db, err := postgres.Open(ctx, place)
	if err != nil {
		return session{}, err
	}
	store, err := db.Store(sqlqueue.Tables{})
	if err != nil {
		return session{}, err
	}
	return sessionOf(ctx, queue.New(store), db.SQL, sqlqueue.PostgreSQL, 500, db.Close)
}

func openQueueMariaDB(ctx context.Context, place string) (session, error) {
	db, err := mysql.Open(ctx, place)
	if err != nil {
		return session{}, err
	}
	store, err := mysql.Store(db)
	if err != nil {
		return session{}, err
	}
	return sessionOf(ctx, queue.New(store), db, sqlqueue.MySQL, 100, db.Close)
}

// sessionOf creates the tables and returns the queue in them. The worker of an idle queue has its
// defaults.
func sessionOf(ctx context.Context, q *queue.Queue, db *sql.DB, d sqlqueue.Dialect, atOnce int,
	close func() error) (session, error) {
	if _, err := migrate.Up(ctx, db, d, sqlqueue.Tables{}); err != nil {
		return session{}, err
	}
	return session{
		push: func(ctx context.Context, n int) error {
			_, err := q.Push(ctx, benchJob{n, note})
			return err
		},
		pushMany: func(ctx context.Context, from, n int) error {
			js := make([]queue.Job, n)
			for i := range js {
				js[i] = benchJob{from + i, note}
			}
			_, err := q.PushMany(ctx, js)
			return err
		},
		work: func(ctx context.Context, n int, began func()) (time.Time, error) {
			reg, err := job.NewRegistry(job.Typed("nothing", func(context.Context, benchJob, job.Envelope) job.Result {
				began()
				return job.Success()
			}))
			if err != nil {
				return time.Time{}, err
			}
			opts := []queue.WorkerOption{queue.Runner(&job.Runner{Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})}
			if n > 0 {
				opts = append(opts, queue.Concurrency(atOnce))
			}
			err = queue.NewWorker(q, reg, opts...).Work(ctx, n)
			return time.Now(), err
		},
		clear: func(ctx context.Context) error { return empty(ctx, db, d, "jobs") },
		close: close,
	}, nil
}

// empty removes all rows of the table, without dead rows where the database has such.
func empty(ctx context.Context, db *sql.DB, d sqlqueue.Dialect, table string) error {
	statement := "TRUNCATE TABLE " + table
	if d == sqlqueue.SQLite {
		statement = "DELETE FROM " + table
	}
	_, err := db.ExecContext(ctx, statement)
	return err
}
