package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var faultSQLCases = []sqlCase{
	{"a job that is finished between the sweep's look and its write stays gone_Row1", func(s *sqlFixture) {
		sc := fixture.NewScript(s.Fixture, &fixture.Script{Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		p := s.Stepped()
		require.Equal(s, "A", p.Claim())
		s.At(301)
		var once sync.Once
		sweeper := s.broken(func(_ context.Context, statement string) error {
			if statement == "BEGIN" {
				once.Do(func() { p.End(nil) })
			}
			return nil
		})
		assert.Zero(s, s.Drain(s.Worker(sweeper, fixture.ScriptedHandlers)))
		s.MustBeEmpty()
		assert.Len(s, sc.Ran(), 1)
	}},
	{"a lease renewed between the sweep's look and its write stays held_Row1", func(s *sqlFixture) {
		s.lapsedRows(1, "plain")
		var once sync.Once
		sweeper := s.broken(func(_ context.Context, statement string) error {
			if statement == "BEGIN" {
				once.Do(func() {
					s.must(fmt.Sprintf("UPDATE %s SET lease_until = %d", s.table("jobs"), s.Now+1000))
				})
			}
			return nil
		})
		s.Drain(s.Worker(sweeper, nil, queue.Queues("elsewhere")))
		assert.EqualValues(s, 1, s.Counts("").Reserved)
	}},
	{"a worker that cannot renew stops its job, and the token decides_Row10", func(s *sqlFixture) {
		q := s.broken(func(_ context.Context, statement string) error {
			if isRenewal(statement) {
				return errFault
			}
			return nil
		})
		s.Push(fixture.Envelope("plain", "a"))
		causes, began := make(chan error, 2), make(chan struct{}, 2)
		w := s.Worker(q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			began <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.Lease(200*time.Millisecond), queue.RenewEvery(20*time.Millisecond))
		wait := s.Start(func() error { _, err := w.ProcessOne(s.Context()); return err })
		fixture.Receive(s.Fixture, began, "the job")
		assert.Equal(s, job.ErrLeaseLost, fixture.Receive(s.Fixture, causes, "the end of the context"))
		require.NoError(s, wait())
		assert.EqualValues(s, 1, s.Counts("").Reserved, "the row waits for its lease to lapse")
		s.At(1)
		r := fixture.NewRecord()
		assert.Equal(s, 1, s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()})))
		s.MustBeEmpty()
	}},
	{"an end that cannot be stored is stored later_Row11", func(s *sqlFixture) {
		var left atomic.Int64
		left.Store(3)
		q := s.broken(func(_ context.Context, statement string) error {
			if s.completes(statement) && left.Add(-1) >= 0 {
				return errFault
			}
			return nil
		})
		s.Push(fixture.Envelope("plain", "a"))
		r := fixture.NewRecord()
		assert.Equal(s, 1, s.Drain(s.Worker(q, []job.Handler{r.Handler()})))
		s.MustBeEmpty()
		assert.Len(s, r.Take(), 1)
	}},
	{"an end that can never be stored leaves the job to the next worker_Row11", func(s *sqlFixture) {
		q := s.broken(func(_ context.Context, statement string) error {
			if s.completes(statement) {
				return errFault
			}
			return nil
		})
		s.Push(fixture.Envelope("plain", "a"))
		r := fixture.NewRecord()
		s.Drain(s.Worker(q, []job.Handler{r.Handler()}, queue.Lease(100*time.Millisecond)))
		s.At(1)
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Len(s, r.Take(), 2)
		s.MustBeEmpty()
	}},
	{"one bad row does not hold up a batch", func(s *sqlFixture) {
		var bad atomic.Value
		q := s.broken(func(_ context.Context, statement string) error {
			if strings.HasPrefix(statement, "INSERT INTO "+s.table("failed_jobs")) {
				bad.Store(statement)
				return errFault
			}
			return nil
		})
		for _, jobType := range []string{"plain", "nobody", "plain"} {
			s.Push(fixture.Envelope(jobType, "a"))
		}
		r := fixture.NewRecord()
		s.Drain(s.Worker(q, []job.Handler{r.Handler()}, queue.Lease(100*time.Millisecond)))
		assert.NotNil(s, bad.Load())
		assert.Equal(s, queue.Counts{Reserved: 1}, s.Counts(""))
	}},
	{"a row that has grown too large for the database ends all the same, and holds up no other", func(s *sqlFixture) {
		full := func() *queue.Queue {
			return s.broken(func(_ context.Context, statement string) error {
				if strings.Contains(statement, "payload = ") ||
					strings.HasPrefix(statement, "INSERT INTO "+s.table("failed_jobs")) &&
						!strings.Contains(statement, "SELECT id, queue") {
					return tooLarge{}
				}
				return nil
			})
		}
		large := s.Push(fixture.Envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		handlers := fixture.Always(job.Retry(errors.New("down")))
		assert.Equal(s, 2, s.Drain(s.Worker(full(), handlers)))
		letters := s.DeadLetters()
		require.Len(s, letters, 1)
		assert.Equal(s, []any{large, "plain", 2, "down"}, []any{letters[0].Row, letters[0].Type, letters[0].Attempts,
			letters[0].Error})
		require.NoError(s, s.Q.Retry(s.Context(), letters[0].ID))

		for range 3 {
			s.Push(fixture.Envelope("plain", "b"), queue.Tries(1))
		}
		s.must(fmt.Sprintf("UPDATE %s SET reserved_token = 'gone.1', reserved_at = %d, lease_until = %d, attempts = 1",
			s.table("jobs"), s.Now, s.Now))
		s.At(1)
		s.Drain(s.Worker(full(), handlers, queue.Queues("elsewhere")))
		assert.Equal(s, queue.Counts{Ready: 1}, s.Counts(""), "the first one has an attempt left")
		require.Len(s, s.DeadLetters(), 3)
		assert.Equal(s, job.ReasonExhausted, s.DeadLetters()[0].Reason)
		assert.Equal(s, 1, s.DeadLetters()[0].Attempts)
	}},
	{"a fault between any two statements leaves each job once_Row47", func(s *sqlFixture) {
		for _, end := range []job.Result{job.Success(), job.Retry(errFault), job.Fail(errFault), job.Defer(time.Hour)} {
			for _, faults := range []int64{1, math.MaxInt64} { // one statement, or all from one on: a crash
				for at := int64(1); ; at++ {
					s.Clear(s)
					s.Push(fixture.Envelope("plain", "a"), queue.Tries(3), queue.Backoff(time.Hour))
					var n atomic.Int64
					q := s.broken(func(context.Context, string) error {
						if i := n.Add(1); i >= at && i-at < faults {
							return errFault
						}
						return nil
					})
					_, err := s.Worker(q, fixture.Always(end), queue.Lease(15*time.Millisecond),
						queue.Grace(15*time.Millisecond)).ProcessOne(s.Context())
					live, dead := s.Counts("").Size(), int64(len(s.DeadLetters()))
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
	{"a stalled query costs its time-out and nothing else_Row56", func(s *sqlFixture) {
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
		r := fixture.NewRecord()
		w := s.Worker(q, []job.Handler{r.Handler()}, queue.QueryTimeout(100*time.Millisecond))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		s.Poll("the stall", func() bool { return stalls.Load() >= 2 })
		s.Push(fixture.Envelope("plain", "a"))
		fixture.Receive(s.Fixture, r.Names, "the job")
		cancel()
		require.NoError(s, wait())
	}},
	{"a worker whose jobs cannot be stored takes no more", func(s *sqlFixture) {
		var looks, runs atomic.Int64
		q := s.broken(func(_ context.Context, statement string) error {
			if strings.Contains(statement, s.table("queue_control")) {
				looks.Add(1) // once a second
			}
			if s.completes(statement) {
				return errFault
			}
			return nil
		})
		for range 400 {
			s.Push(fixture.Envelope("plain", "a"))
		}
		w := s.Worker(q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			runs.Add(1)
			return job.Success()
		}), queue.Concurrency(5), queue.Grace(time.Millisecond))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		moreLooks := func(n int64) {
			after := looks.Load() + n
			s.Poll("more looks", func() bool { return looks.Load() >= after })
		}
		s.Poll("some jobs", func() bool { return runs.Load() >= 100 })
		moreLooks(2) // until the worker has filled what it fills
		before := runs.Load()
		moreLooks(2)
		assert.Equal(s, before, runs.Load())
		cancel()
		require.NoError(s, wait())
	}},
	{"what a deadlock ended is tried again, and counted_Row40", func(s *sqlFixture) {
		var left atomic.Int64
		left.Store(2)
		q := s.broken(func(_ context.Context, statement string) error {
			if s.completes(statement) && left.Add(-1) >= 0 {
				return deadlock(s.db.Dialect)
			}
			return nil
		})
		_, err := q.PushMany(s.Context(), []queue.Job{fixture.Typed("plain"), fixture.Typed("plain")})
		require.NoError(s, err)
		r := fixture.NewRecord()
		assert.Equal(s, 2, s.Drain(s.Worker(q, []job.Handler{r.Handler()})))
		assert.Len(s, r.Take(), 2)
		s.MustBeEmpty()
		assert.EqualValues(s, 2, retriesOf(q))
	}},
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
