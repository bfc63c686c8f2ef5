package queuetest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sqlhook"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var errFault = errors.New("injected fault")

// broken is a queue on the stage with a hook before each statement, "BEGIN" and "COMMIT" too. What the hook returns is
// the statement's error, and it did not reach the database.
func (s *stage) broken(hook func(ctx context.Context, statement string) error) *queue.Queue {
	s.Helper()
	return s.hooked(func(ctx context.Context, c *sqlhook.Call) error { return hook(ctx, c.Statement) })
}

func (s *stage) hooked(before func(context.Context, *sqlhook.Call) error) *queue.Queue {
	s.Helper()
	db, read := hooked(s, s.db.SQL, before), hooked(s, s.db.Read, before)
	return s.over(db, sqlqueue.WithReader(read), s.withClock())
}

// deadlock is the error of a statement that the database gave up for another.
func deadlock(d sqlqueue.Dialect) error {
	switch d {
	case sqlqueue.PostgreSQL:
		return stateError("40P01")
	case sqlqueue.MySQL:
		return errors.New("Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction")
	}
	return errors.New("database is locked (5) (SQLITE_BUSY)")
}

func retriesOf(q *queue.Queue) int64 { return q.Backend().(*sqlqueue.Store).Retries() }

type stateError string

func (e stateError) Error() string    { return "SQLSTATE " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// A tooLarge error is what each database says of a value that it cannot take.
type tooLarge struct{}

func (tooLarge) Error() string {
	return "Error 1153: packet too big; string or blob too big (18)"
}
func (tooLarge) SQLState() string { return "54000" }

// isRenewal tells the statement that renews leases.
func isRenewal(statement string) bool { return strings.Contains(statement, "SET lease_until = ") }

// settles tells the statement that removes finished jobs.
func (s *stage) settles(statement string) bool {
	return strings.HasPrefix(statement, "DELETE FROM "+s.table("jobs"))
}

var faults = []behaviour{
	{"a job that is finished between the sweep's look and its write stays gone_Row1", func(s *stage) {
		sc := newScript(s, &script{handle: held})
		s.pushJob(sc.job("A"))
		p := s.puppet()
		require.Equal(s, "A", p.claim())
		s.at(301)
		var once sync.Once
		sweeper := s.broken(func(_ context.Context, statement string) error {
			if statement == "BEGIN" {
				once.Do(func() { p.end(nil) })
			}
			return nil
		})
		assert.Zero(s, s.drain(s.worker(sweeper, scriptedHandlers)))
		s.mustBeEmpty()
		assert.Len(s, sc.ran(), 1)
	}},
	{"a lease renewed between the sweep's look and its write stays held_Row1", func(s *stage) {
		s.lapsedRows(1, "plain")
		var once sync.Once
		sweeper := s.broken(func(_ context.Context, statement string) error {
			if statement == "BEGIN" {
				once.Do(func() {
					s.db.must(s, fmt.Sprintf("UPDATE %s SET lease_until = %d", s.table("jobs"), s.now+1000))
				})
			}
			return nil
		})
		s.drain(s.worker(sweeper, nil, queue.Queues("elsewhere")))
		assert.EqualValues(s, 1, s.counts("").Reserved)
	}},
	{"a worker that cannot renew stops its job, and the token decides_Row10", func(s *stage) {
		q := s.broken(func(_ context.Context, statement string) error {
			if isRenewal(statement) {
				return errFault
			}
			return nil
		})
		s.push(envelope("plain", "a"))
		causes, began := make(chan error, 2), make(chan struct{}, 2)
		w := s.worker(q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
			began <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.Lease(200*time.Millisecond), queue.RenewEvery(20*time.Millisecond))
		wait := s.start(func() error { _, err := w.ProcessOne(s.Context()); return err })
		receive(s, began, "the job")
		assert.Equal(s, job.ErrLeaseLost, receive(s, causes, "the end of the context"))
		require.NoError(s, wait())
		assert.EqualValues(s, 1, s.counts("").Reserved, "the row waits for its lease to lapse")
		s.at(1)
		r := newRecord()
		assert.Equal(s, 1, s.drain(s.worker(s.q, []job.Handler{r.handler()})))
		s.mustBeEmpty()
	}},
	{"an end that cannot be stored is stored later_Row11", func(s *stage) {
		var left atomic.Int64
		left.Store(3)
		q := s.broken(func(_ context.Context, statement string) error {
			if s.settles(statement) && left.Add(-1) >= 0 {
				return errFault
			}
			return nil
		})
		s.push(envelope("plain", "a"))
		r := newRecord()
		assert.Equal(s, 1, s.drain(s.worker(q, []job.Handler{r.handler()})))
		s.mustBeEmpty()
		assert.Len(s, r.take(), 1)
	}},
	{"an end that can never be stored leaves the job to the next worker_Row11", func(s *stage) {
		q := s.broken(func(_ context.Context, statement string) error {
			if s.settles(statement) {
				return errFault
			}
			return nil
		})
		s.push(envelope("plain", "a"))
		r := newRecord()
		s.drain(s.worker(q, []job.Handler{r.handler()}, queue.Lease(100*time.Millisecond)))
		s.at(1)
		s.drain(s.worker(s.q, []job.Handler{r.handler()}))
		assert.Len(s, r.take(), 2)
		s.mustBeEmpty()
	}},
	{"one bad row does not hold up a batch", func(s *stage) {
		var bad atomic.Value
		q := s.broken(func(_ context.Context, statement string) error {
			if strings.HasPrefix(statement, "INSERT INTO "+s.table("failed_jobs")) {
				bad.Store(statement)
				return errFault
			}
			return nil
		})
		for _, jobType := range []string{"plain", "nobody", "plain"} {
			s.push(envelope(jobType, "a"))
		}
		r := newRecord()
		s.drain(s.worker(q, []job.Handler{r.handler()}, queue.Lease(100*time.Millisecond)))
		assert.NotNil(s, bad.Load())
		assert.Equal(s, queue.Counts{Reserved: 1}, s.counts(""))
	}},
	{"a row that has grown too large for the database ends all the same, and holds up no other", func(s *stage) {
		full := func() *queue.Queue {
			return s.broken(func(_ context.Context, statement string) error {
				if strings.Contains(statement, "payload = ") || strings.HasPrefix(statement, "INSERT INTO "+s.table("failed_jobs")) && !strings.Contains(statement, "SELECT id, queue") {
					return tooLarge{}
				}
				return nil
			})
		}
		large := s.push(envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		handlers := always(job.Retry(errors.New("down")))
		assert.Equal(s, 2, s.drain(s.worker(full(), handlers)))
		letters := s.failed()
		require.Len(s, letters, 1)
		assert.Equal(s, []any{large, "plain", 2, "down"}, []any{letters[0].Row, letters[0].Type, letters[0].Attempts, letters[0].Error})
		require.NoError(s, s.q.Retry(s.Context(), letters[0].ID))

		for range 3 {
			s.push(envelope("plain", "b"), queue.Tries(1))
		}
		s.db.must(s, fmt.Sprintf("UPDATE %s SET reserved_token = 'gone.1', reserved_at = %d, lease_until = %d, attempts = 1", s.table("jobs"), s.now, s.now))
		s.at(1)
		s.drain(s.worker(full(), handlers, queue.Queues("elsewhere")))
		assert.Equal(s, queue.Counts{Ready: 1}, s.counts(""), "the first one has an attempt left")
		require.Len(s, s.failed(), 3)
		assert.Equal(s, job.ReasonExhausted, s.failed()[0].Reason)
		assert.Equal(s, 1, s.failed()[0].Attempts)
	}},
	{"a fault between any two statements leaves each job once_Row47", func(s *stage) {
		for _, end := range []job.Result{job.Success(), job.Retry(errFault), job.Fail(errFault), job.Defer(time.Hour)} {
			for _, faults := range []int64{1, math.MaxInt64} { // one statement, or all from one on: a crash
				for at := int64(1); ; at++ {
					s.clear()
					s.push(envelope("plain", "a"), queue.Tries(3), queue.Backoff(time.Hour))
					var n atomic.Int64
					q := s.broken(func(context.Context, string) error {
						if i := n.Add(1); i >= at && i-at < faults {
							return errFault
						}
						return nil
					})
					_, err := s.worker(q, always(end), queue.Lease(15*time.Millisecond), queue.Grace(15*time.Millisecond)).ProcessOne(s.Context())
					live, dead := s.counts("").Size(), int64(len(s.failed()))
					if end.Kind() == job.KindSuccess {
						assert.LessOrEqual(s, live+dead, int64(1))
					} else {
						assert.EqualValues(s, 1, live+dead, "after %d faults from statement %d on in a %s", faults, at, end.Kind())
					}
					if n.Load() < at {
						require.NoError(s, err)
						break // it went through
					}
				}
			}
		}
	}},
	{"a default lease lets a killed worker's job run again within a minute_Row15", func(s *stage) {
		id := s.push(envelope("plain", "a"))
		var lease time.Duration // of a worker that was told none
		s.drain(s.worker(s.q, answers(func(context.Context, job.Envelope) job.Result {
			info := s.inspect(id).Job
			lease = info.LeaseUntil.Sub(info.ReservedAt)
			return job.Success()
		})))
		require.Positive(s, lease)

		sc := newScript(s, &script{handle: held})
		s.pushJob(sc.job("A"))
		p := s.puppet(queue.Lease(lease))
		require.Equal(s, "A", p.claim())
		p.leave()
		s.at(60)
		q := s.puppet()
		require.Equal(s, "A", q.claim())
		q.end(nil)
	}},
	{"a stalled query costs its time-out and nothing else_Row56", func(s *stage) {
		var stalls atomic.Int64
		q := s.broken(func(ctx context.Context, statement string) error {
			if strings.HasPrefix(statement, "WITH due") || strings.HasPrefix(statement, "SELECT id FROM (SELECT id FROM (") {
				if stalls.Add(1) == 2 {
					<-ctx.Done()
					return ctx.Err()
				}
			}
			return nil
		})
		r := newRecord()
		w := s.worker(q, []job.Handler{r.handler()}, queue.QueryTimeout(100*time.Millisecond))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		s.poll("the stall", func() bool { return stalls.Load() >= 2 })
		s.push(envelope("plain", "a"))
		receive(s, r.names, "the job")
		cancel()
		require.NoError(s, wait())
	}},
	{"many workers and jobs: each job once, deadlocks tried again_Row40_Row46", func(s *stage) {
		const workers, jobs = 16, 5000
		q := s.real()
		sc := newScript(s, &script{})
		var js []queue.Job
		for i := range jobs {
			js = append(js, sc.job(fmt.Sprint(i)))
		}
		_, err := q.PushMany(s.Context(), js)
		require.NoError(s, err)
		var all sync.WaitGroup
		var retries atomic.Int64
		for range workers {
			own := s.real()
			w := s.worker(own, scriptedHandlers, queue.Concurrency(8))
			all.Go(func() {
				s.drain(w)
				retries.Add(retriesOf(own))
			})
		}
		all.Wait()
		s.Logf("%d transactions were tried again", retries.Load())
		s.mustBeEmpty()
		seen := map[string]int{}
		for _, name := range sc.ran() {
			seen[name]++
			require.Equal(s, 1, seen[name], "job %s ran twice", name)
		}
		assert.Len(s, seen, jobs)
	}},
	{"what a deadlock ended is tried again, and counted_Row40", func(s *stage) {
		var left atomic.Int64
		left.Store(2)
		q := s.broken(func(_ context.Context, statement string) error {
			if s.settles(statement) && left.Add(-1) >= 0 {
				return deadlock(s.db.Dialect)
			}
			return nil
		})
		_, err := q.PushMany(s.Context(), []queue.Job{typed{"plain"}, typed{"plain"}})
		require.NoError(s, err)
		r := newRecord()
		assert.Equal(s, 2, s.drain(s.worker(q, []job.Handler{r.handler()})))
		assert.Len(s, r.take(), 2)
		s.mustBeEmpty()
		assert.EqualValues(s, 2, retriesOf(q))
	}},
	{"jobs that failed together come back apart_Row45", func(s *stage) {
		const jobs = 100
		for range jobs {
			s.push(envelope("plain", "a"))
		}
		s.drain(s.worker(s.q, always(job.Retry(errors.New("down")))))
		due := map[int64]bool{}
		var low, high int64
		for _, info := range s.list() {
			ms := info.AvailableAt.UnixMilli() - s.now
			due[ms] = true
			if low == 0 || ms < low {
				low = ms
			}
			high = max(high, ms)
		}
		assert.Greater(s, len(due), jobs/4)
		assert.Less(s, low, int64(900))
		assert.Greater(s, high, int64(1100))
	}},
	{"pushes are announced once in 100 ms for each queue_Row55", func(s *stage) {
		if s.db.Channel == "" {
			s.Skip("this database announces nothing")
		}
		notified := map[string]int64{}
		db := Spy(s.T, s.db.SQL, func(statement string, args []driver.NamedValue) {
			if strings.Contains(statement, "pg_notify") {
				notified[fmt.Sprint(args[len(args)-1].Value)]++
			}
		})
		q := s.over(db, sqlqueue.WithNotify(s.db.Channel))
		begin := time.Now()
		for i := range 300 {
			_, err := q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.On(fmt.Sprintf("q%d", i%3)))
			require.NoError(s, err)
		}
		assert.Len(s, notified, 3)
		for name, n := range notified {
			assert.LessOrEqual(s, n, time.Since(begin).Milliseconds()/100+1, name)
		}
	}},
	{"what is not told yet, or never, holds no announcement up", func(s *stage) {
		if s.db.Channel == "" {
			s.Skip("this database announces nothing")
		}
		told := make(chan string, 100)
		ctx, stop := context.WithCancel(s.Context())
		wait := s.start(func() error { return s.db.Waker.Wait(ctx, func(queue string) { told <- queue }) })
		assert.Empty(s, receive(s, told, "the first wake-up"))
		q := s.open(sqlqueue.WithNotify(s.db.Channel))
		tx, err := s.db.SQL.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		defer tx.Rollback()
		_, err = q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.On("committed late"), sqlqueue.In(tx))
		require.NoError(s, err)
		_, err = q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.On("committed late"))
		require.NoError(s, err)
		assert.Equal(s, "committed late", receive(s, told, "the announcement"))

		unique := func(key string) string {
			id, err := q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.On("unique"), queue.Unique(key, queue.TakenExisting))
			require.NoError(s, err)
			return id
		}
		_, err = s.q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.Unique("taken", queue.TakenReject))
		require.NoError(s, err)
		unique("taken")
		unique("free")
		assert.Equal(s, "unique", receive(s, told, "the announcement"))
		stop()
		require.ErrorIs(s, wait(), context.Canceled)
	}},
}
