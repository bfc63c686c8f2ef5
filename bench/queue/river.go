package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/taskd-go/task/queue/sqlqueue"
)

func (benchJob) Kind() string { return "nothing" }

type riverWorker struct {
	river.WorkerDefaults[benchJob]
	began func()
}

func (w *riverWorker) Work(context.Context, *river.Job[benchJob]) error {
	w.began()
	return nil
}

var quiet = slog.New(slog.DiscardHandler)

// riverBest has the settings of River's own benchmark.
var riverBest = river.Config{
	FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
}

var riverDefault = river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}}

func openRiverBest(ctx context.Context, place string) (session, error) {
	return openRiverPostgres(ctx, place, riverBest)
}

func openRiverDefault(ctx context.Context, place string) (session, error) {
	return openRiverPostgres(ctx, place, riverDefault)
}

func openRiverPostgres(ctx context.Context, place string, setting river.Config) (session, error) {
	config, err := pgxpool.ParseConfig(place)
	if err != nil {
		return session{}, err
	}
	config.MaxConns = 16 // as many as this project's queue has
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return session{}, err
	}
	s, err := openRiver(ctx, riverpgxv5.New(pool), setting)
	s.clear = func(ctx context.Context) error {
		_, err := pool.Exec(ctx, "TRUNCATE TABLE river_job")
		return err
	}
	s.close = func() error { pool.Close(); return nil }
	return s, err
}

func openRiverSQLite(ctx context.Context, place string) (session, error) {
	db, err := openSQLiteFile(place)
	if err != nil {
		return session{}, err
	}
	setting := riverBest
	setting.Queues = riverDefault.Queues
	s, err := openRiver(ctx, riversqlite.New(db), setting)
	s.clear = func(ctx context.Context) error { return empty(ctx, db, sqlqueue.SQLite, "river_job") }
	s.close = db.Close
	return s, err
}

func openRiver[TTx any](ctx context.Context, driver riverdriver.Driver[TTx],
	setting river.Config) (session, error) {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return session{}, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return session{}, err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: quiet})
	if err != nil {
		return session{}, err
	}
	return session{
		push: func(ctx context.Context, n int) error {
			_, err := client.Insert(ctx, benchJob{n, note}, nil)
			return err
		},
		pushMany: func(ctx context.Context, from, n int) error {
			params := make([]river.InsertManyParams, n)
			for i := range params {
				params[i].Args = benchJob{from + i, note}
			}
			_, err := client.InsertManyFast(ctx, params)
			return err
		},
		work: func(ctx context.Context, n int, began func()) (time.Time, error) {
			return riverWork(ctx, driver, setting, n, began)
		},
	}, nil
}

// riverWork counts the events of completed jobs, as River's own benchmark does. River sends them
// when it has stored the completion.
func riverWork[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], setting river.Config, n int,
	began func()) (end time.Time, err error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{began: began})
	setting.Workers, setting.Logger = workers, quiet
	client, err := river.NewClient(driver, &setting)
	if err != nil {
		return end, err
	}
	done, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: max(n, 1000),
		Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	if err := client.Start(ctx); err != nil {
		return end, err
	}
	for seen := 0; n == 0 || seen < n; seen++ {
		select {
		case <-done:
		case <-ctx.Done():
			return end, ctx.Err()
		}
	}
	end = time.Now()
	return end, errors.Join(client.Stop(ctx))
}
