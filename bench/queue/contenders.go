package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// queueBatch is how many jobs one push of a batch has.
const queueBatch = 1000

// note makes a job's payload about 64 bytes.
const note = "the letter that was asked for, and 20 more"

// A queueJob is what every queue carries. It does nothing.
type queueJob struct {
	N    int    `json:"n"`
	Note string `json:"note"`
}

// A queueContender is a queue of jobs in one store.
type queueContender struct {
	name  string
	store store
	// setting says what is not default.
	setting string
	// jobs are so many as it works off in about a second.
	jobs int
	// open opens the queue at a place that the store has made. Several processes may.
	open func(ctx context.Context, place string) (queueSession, error)
}

// A queueSession is a queue that is open.
type queueSession struct {
	push     func(ctx context.Context, n int) error
	pushMany func(ctx context.Context, from, n int) error // nil: it has none
	// work works n jobs off, or until ctx ends if n is 0, and returns when the last one was done,
	// as far as the queue tells. Each job calls began.
	work func(ctx context.Context, n int, began func()) (end time.Time, err error)
	// clear removes all jobs, finished ones too.
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

// queueContenders lists them in the order of the report.
func queueContenders() []queueContender {
	return []queueContender{
		{nameQueueSQLite, storeSQLite, "100 at once", 20_000, openQueueSQLite},
		{nameRiverSQLite, storeSQLite, "100 at once, fetches 2 ms apart, polls every 20 ms", 2_000, openRiverSQLite},
		{nameGoqite, storeSQLite, "100 at once", 5_000, openGoqite},
		{nameQueuePostgres, storePostgres, "500 at once", 20_000, openQueuePostgres},
		{nameRiverBest, storePostgres, "2,000 at once, fetches 2 ms apart, polls every 20 ms", 20_000, openRiverBest},
		{nameRiverDefault, storePostgres, "100 at once", 1_000, openRiverDefault},
		{nameQueueMariaDB, storeMariaDB, "100 at once", 5_000, openQueueMariaDB},
		{nameAsynq, storeRedis, "100 at once", 5_000, openAsynq},
	}
}

// A runningQueue is a contender in this run.
type runningQueue struct {
	queueContender
	place string
	queueSession
}

type runningQueues []*runningQueue

// openQueues opens those whose store answers. Those that are open when one fails are returned, to
// be closed.
func (s *stores) openQueues(ctx context.Context, only *regexp.Regexp) (field runningQueues, err error) {
	for _, c := range queueContenders() {
		if !only.MatchString(c.name) || !s.answers(c.store) {
			continue
		}
		q := &runningQueue{queueContender: c}
		if q.place, err = s.make(ctx, c.store); err == nil {
			q.queueSession, err = c.open(ctx, q.place)
		}
		if err != nil {
			return field, fmt.Errorf("%s: %w", c.name, err)
		}
		field = append(field, q)
	}
	return field, nil
}

func (field runningQueues) close() error {
	var errs []error
	for _, q := range field {
		errs = append(errs, q.queueSession.close())
	}
	return errors.Join(errs...)
}
