package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// batchSize is the number of jobs in one push of a batch.
const batchSize = 1000

// note makes the payload of a job about 64 bytes long.
const note = "the letter that was asked for, and 20 more"

// A benchJob is the job in all queues. It does nothing.
type benchJob struct {
	N    int    `json:"n"`
	Note string `json:"note"`
}

// A contender is a queue of jobs in one store.
type contender struct {
	name  string
	store store
	// setting describes the settings that are not defaults.
	setting string
	// jobs is how many jobs the queue works in about a second.
	jobs int
	// open opens the queue at a place that the store has made. Several processes may open one
	// place.
	open func(ctx context.Context, place string) (session, error)
}

// A session is an open queue.
type session struct {
	push     func(ctx context.Context, n int) error
	pushMany func(ctx context.Context, from, n int) error // nil: the queue has no batches
	// work works n jobs, or, if n is 0, jobs until ctx ends. It returns when the last job was done,
	// as far as the queue reports that. Each job calls began.
	work func(ctx context.Context, n int, began func()) (end time.Time, err error)
	// clear removes all jobs, including finished ones.
	clear func(ctx context.Context) error
	close func() error
}

const (
	nameQueueSQLite   = "this queue, SQLite"
	nameQueuePostgres = "this queue, PostgreSQL"
	nameQueueMariaDB  = "this queue, MariaDB"
	nameGoqite        = "goqite, SQLite"
	nameRiverSQLite   = "River, SQLite"
	nameRiverDefault  = "River, PostgreSQL, defaults"
	nameRiverBest     = "River, PostgreSQL, best"
	nameAsynq         = "asynq, Redis"
)

// contenders returns all contenders in the order of the report.
func contenders() []contender {
	return []contender{
		{nameQueueSQLite, storeSQLite, "100 at once", 20_000, openQueueSQLite},
		{nameRiverSQLite, storeSQLite, "100 at once, fetch 2 ms, poll 20 ms", 2_000, openRiverSQLite},
		{nameGoqite, storeSQLite, "100 at once", 5_000, openGoqite},
		{nameQueuePostgres, storePostgres, "500 at once", 20_000, openQueuePostgres},
		{nameRiverBest, storePostgres, "2,000 at once, fetch 2 ms, poll 20 ms", 20_000, openRiverBest},
		{nameRiverDefault, storePostgres, "100 at once", 1_000, openRiverDefault},
		{nameQueueMariaDB, storeMariaDB, "100 at once", 5_000, openQueueMariaDB},
		{nameAsynq, storeRedis, "100 at once", 5_000, openAsynq},
	}
}

// A running contender is open at its place.
type running struct {
	contender
	place string
	session
}

type runningQueues []*running

// openQueues opens the contenders whose store answers. If one fails, it returns the others, which
// the caller must close.
func (s *stores) openQueues(ctx context.Context, only *regexp.Regexp) (selected runningQueues, err error) {
	for _, c := range contenders() {
		if !only.MatchString(c.name) || !s.answers(c.store) {
			continue
		}
		q := &running{contender: c}
		if q.place, err = s.make(ctx, c.store); err == nil {
			q.session, err = c.open(ctx, q.place)
		}
		if err != nil {
			return selected, fmt.Errorf("%s: %w", c.name, err)
		}
		selected = append(selected, q)
	}
	return selected, nil
}

func (selected runningQueues) close() error {
	var errs []error
	for _, q := range selected {
		errs = append(errs, q.session.close())
	}
	return errors.Join(errs...)
}
