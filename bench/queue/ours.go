package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/open"
	"github.com/taskd-go/task/queue/sqlqueue"
)

func (benchJob) JobType() string              { return "nothing" }
func (benchJob) Handle(context.Context) error { return nil }

func openQueueSQLite(ctx context.Context, place string) (session, error) {
	return openQueue(ctx, "sqlite:"+place, 100)
}

func openQueuePostgres(ctx context.Context, place string) (session, error) {
	return openQueue(ctx, place, 500)
}

func openQueueMariaDB(ctx context.Context, place string) (session, error) {
	return openQueue(ctx, place, 100)
}

// openQueue creates the tables and returns the queue in them. The worker of an idle queue has its
// defaults.
func openQueue(ctx context.Context, dsn string, atOnce int) (session, error) {
	db, err := open.Open(ctx, dsn)
	if err != nil {
		return session{}, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return session{}, errors.Join(err, db.Close())
	}
	q := queue.New(db.Store)
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
		clear: func(ctx context.Context) error { return empty(ctx, db.SQL, db.Dialect, "jobs") },
		close: db.Close,
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
