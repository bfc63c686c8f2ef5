package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	// work works n jobs off, or until ctx ends if n is 0, and returns when the last one was done, as far as the queue
	// tells. Each job calls began.
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

// runQueues measures the queues and writes the report.
func runQueues(f flags, w, progress io.Writer) (err error) {
	ctx := context.Background()
	only, err := regexp.Compile(f.contenders)
	if err != nil {
		return fmt.Errorf("-contender: %w", err)
	}
	cases, err := regexp.Compile(f.cases)
	if err != nil {
		return fmt.Errorf("-case: %w", err)
	}
	if f.rounds < 1 || f.seconds <= 0 {
		return fmt.Errorf("nothing to measure: %d rounds of %v s", f.rounds, f.seconds)
	}
	p := queuePlan{only: cases, rounds: f.rounds, turn: time.Duration(f.seconds * float64(time.Second)), share: 1, pickUps: 20}
	if f.quick {
		p = queuePlan{only: cases, rounds: 3, turn: 100 * time.Millisecond, share: 0.2, pickUps: 4}
	}
	places, err := openStores(ctx, progress)
	defer func() { err = errors.Join(err, places.close(ctx)) }()
	if err != nil {
		return err
	}
	field, err := places.openQueues(ctx, only)
	defer func() { err = errors.Join(err, field.close()) }()
	if err != nil {
		return err
	}
	results, err := p.run(ctx, field, progress)
	if err != nil {
		return err
	}
	reportQueues(w, p, places, results)
	return nil
}

// A runningQueue is a contender in this run.
type runningQueue struct {
	queueContender
	place string
	queueSession
}

type runningQueues []*runningQueue

// openQueues opens those whose store answers. Those that are open when one fails are returned, to be closed.
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

// envPlace is where a copy of this program finds the queue whose worker it is.
const envPlace = "BENCH_QUEUE"

// serveQueue is the worker of an idle queue: it writes the time of each job's begin to standard output.
func serveQueue(name string) error {
	ctx := context.Background()
	for _, c := range queueContenders() {
		if c.name != name {
			continue
		}
		s, err := c.open(ctx, os.Getenv(envPlace))
		if err != nil {
			return err
		}
		_, err = s.work(ctx, 0, func() { writeStamp(os.Stdout, time.Now()) })
		return err
	}
	return fmt.Errorf("there is no queue %q", name)
}
