// Package queuetest is what a queue promises, as tests that run over a given database.
package queuetest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A Database is where the tests run: with the queue's tables in it, and nothing in those.
type Database struct {
	SQL     *sql.DB
	Read    *sql.DB // nil: SQL
	Dialect sqlqueue.Dialect
	Tables  sqlqueue.Tables
	Waker   queue.Waker // nil: none
	Channel string      // for queue.NotifyOn; "": none
}

// Run runs all tests as subtests of t, one after another, and leaves the tables empty.
func Run(t *testing.T, db Database) {
	if db.Read == nil {
		db.Read = db.SQL
	}
	clock := db.Tables.Prefix + "test_clock"
	db.must(t, "CREATE TABLE "+clock+" (ms BIGINT NOT NULL)")
	defer db.must(t, "DROP TABLE "+clock)
	db.must(t, "INSERT INTO "+clock+" (ms) VALUES (0)")
	for _, group := range []struct {
		name  string
		tests []behaviour
	}{
		{"push", pushes}, {"unique", uniques}, {"order", orders}, {"work", works}, {"lease", leases}, {"end", ends},
		{"dead letters", deaths}, {"replay", replays}, {"control", controls}, {"vectors", vectors}, {"faults", faults}, {"outage", outages},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.tests {
				t.Run(b.name, func(t *testing.T) {
					b.test((&stage{db: db, clock: clock}).sub(t))
				})
			}
		})
	}
}

// sub is a stage for a test of its own inside this one.
func (s *stage) sub(t *testing.T) *stage {
	sub := &stage{T: t, db: s.db, clock: s.clock}
	sub.clear()
	sub.at(0)
	sub.q = sub.open()
	return sub
}

type behaviour struct {
	name string
	test func(s *stage)
}

func (db Database) must(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := db.SQL.ExecContext(context.Background(), statement, args...)
	require.NoError(t, err, statement)
}

// A stage is one test: a database with a clock that stands still until the test moves it.
type stage struct {
	*testing.T
	db    Database
	clock string
	now   int64 // ms
	q     *queue.Queue
}

// epoch is the stage's second 0 in milliseconds.
const epoch = int64(1_700_000_000_000)

// limit is how long a test waits for something that must come.
const limit = 20 * time.Second

func (s *stage) table(name string) string { return s.db.Tables.Prefix + name }

func (s *stage) clear() {
	for _, name := range []string{"jobs", "failed_jobs", "queue_control", "queue_locks", "queue_holds"} {
		s.db.must(s, "DELETE FROM "+s.table(name))
	}
}

// open is a queue of its own on the stage's database and clock, as another process would have one.
func (s *stage) open(opts ...sqlqueue.Option) *queue.Queue {
	s.Helper()
	return s.over(s.db.SQL, append([]sqlqueue.Option{sqlqueue.WithReader(s.db.Read), s.withClock()}, opts...)...)
}

func (s *stage) withClock() sqlqueue.Option {
	return sqlqueue.WithClock("(SELECT ms FROM " + s.clock + ")")
}

// over is a queue in the stage's tables over a pool of connections.
func (s *stage) over(db *sql.DB, opts ...sqlqueue.Option) *queue.Queue {
	s.Helper()
	store, err := sqlqueue.New(db, s.db.Dialect, append([]sqlqueue.Option{sqlqueue.WithTables(s.db.Tables)}, opts...)...)
	require.NoError(s, err)
	return queue.New(store, queue.Logger(quiet))
}

// real is a queue on the database's own clock.
func (s *stage) real(opts ...sqlqueue.Option) *queue.Queue {
	s.Helper()
	return s.over(s.db.SQL, append([]sqlqueue.Option{sqlqueue.WithReader(s.db.Read)}, opts...)...)
}

// at moves the clock to a second.
func (s *stage) at(second float64) {
	s.Helper()
	s.now = epoch + int64(second*1000)
	s.db.must(s, fmt.Sprintf("UPDATE %s SET ms = %d", s.clock, s.now))
}

func (s *stage) advance(d time.Duration) {
	s.Helper()
	s.at(float64(s.now-epoch+d.Milliseconds()) / 1000)
}

// worker is a worker that tests drive: it looks often and says nothing.
func (s *stage) worker(q *queue.Queue, handlers []job.Handler, opts ...queue.WorkerOption) *queue.Worker {
	s.Helper()
	reg, err := job.NewRegistry(handlers...)
	require.NoError(s, err)
	own := []queue.WorkerOption{queue.Poll(10 * time.Millisecond), queue.Runner(&job.Runner{Logger: quiet})}
	return queue.NewWorker(q, reg, append(own, opts...)...)
}

func (s *stage) push(e job.Envelope, opts ...queue.PushOption) string {
	s.Helper()
	id, err := s.q.PushEnvelope(s.Context(), e, opts...)
	require.NoError(s, err)
	return id
}

// envelope is a job of a type that carries a name.
func envelope(jobType, name string) job.Envelope {
	e, err := job.New(jobType, map[string]string{"name": name}, nil, job.RetryPolicy{})
	if err != nil {
		panic(err) // the tests' own types are not empty
	}
	return e
}

func nameOf(e job.Envelope) string {
	var p struct {
		Name string `json:"name"`
	}
	_ = e.Bind(&p)
	return p.Name
}

func (s *stage) counts(queueName string) queue.Counts {
	s.Helper()
	c, err := s.q.Counts(s.Context(), queueName)
	require.NoError(s, err)
	return c
}

func (s *stage) mustBeEmpty() {
	s.Helper()
	assert.Equal(s, queue.Counts{}, s.counts(""))
}

func (s *stage) failed() (letters []queue.FailedJob) {
	s.Helper()
	for f, err := range s.q.Failed(s.Context(), queue.Filter{}) {
		require.NoError(s, err)
		letters = append(letters, f)
	}
	return letters
}

func (s *stage) list() (jobs []queue.JobInfo) {
	s.Helper()
	for info, err := range s.q.List(s.Context(), "") {
		require.NoError(s, err)
		jobs = append(jobs, info)
	}
	return jobs
}

func (s *stage) inspect(id string) queue.Record {
	s.Helper()
	r, err := s.q.Inspect(s.Context(), id)
	require.NoError(s, err)
	return r
}

// drain works until empty and returns what ran, in order.
func (s *stage) drain(w *queue.Worker) int {
	s.Helper()
	n, err := w.WorkUntilEmpty(s.Context(), 0)
	require.NoError(s, err)
	return n
}

// start runs f and returns a function that waits for its error.
func (s *stage) start(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error {
		s.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(limit):
			require.Fail(s, "it did not return")
			return nil
		}
	}
}

// poll waits until a condition holds that only looking can tell.
func (s *stage) poll(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, limit, 2*time.Millisecond, what)
}

func (s *stage) int(query string, args ...any) (n int64) {
	s.Helper()
	require.NoError(s, s.db.SQL.QueryRowContext(s.Context(), query, args...).Scan(&n))
	return n
}

// place is the n-th placeholder of the stage's database.
func (s *stage) place(n int) string {
	if s.db.Dialect == sqlqueue.PostgreSQL {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

func receive[T any](s *stage, c <-chan T, what string) (v T) {
	s.Helper()
	select {
	case v = <-c:
		return v
	case <-time.After(limit):
		require.Fail(s, "nothing came: "+what)
		return v
	}
}
