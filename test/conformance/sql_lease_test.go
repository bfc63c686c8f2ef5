package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var leaseSQLCases = []sqlCase{
	{"after the first lapse at once, from the second on after the backoff from the lapse", func(s *sqlFixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Backoff(60*time.Second))
		lapse := func(lease string, crashes int) {
			s.must(fmt.Sprintf("UPDATE %s SET reserved_token = 'x.1', reserved_at = 0, lease_until = %d, crashes = %d, "+
				"attempts = 2",
				s.table("jobs"), s.Now, crashes))
		}
		s.At(100)
		lapse("first", 0)
		s.At(100.001)
		r := fixture.NewRecord()
		w := s.Worker(s.Q, []job.Handler{r.Handler()})
		lapse("second", 1)
		s.At(110)
		assert.Zero(s, s.Drain(w))
		assert.Equal(s, fixture.Epoch+160_001, s.List()[0].AvailableAt.UnixMilli())
		s.At(160.001)
		assert.Equal(s, 1, s.Drain(w))
	}},
	{"a handler learns that its lease was lost", func(s *sqlFixture) {
		q := s.OpenLive()
		id, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"))
		require.NoError(s, err)
		cause, began := make(chan error, 1), make(chan struct{})
		w := s.Worker(q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.RenewEvery(10*time.Millisecond))
		wait := s.Start(func() error { _, err := w.ProcessOne(s.Context()); return err })
		fixture.Receive(s.Fixture, began, "the job")
		s.must("UPDATE " + s.table("jobs") + " SET reserved_token = 'other.1', seq = seq + 1")
		assert.Equal(s, job.ErrLeaseLost, fixture.Receive(s.Fixture, cause, "the end of the context"))
		require.NoError(s, wait())
		assert.Equal(s, "other", s.Inspect(id).Job.ReservedBy)
	}},
	{"several sweeps at once end each lapsed reservation once_Row9", func(s *sqlFixture) {
		const jobs = 1000
		s.lapsedRows(jobs, "nobody")
		var requeued atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			w := s.Worker(s.Open(), nil, queue.Queues("elsewhere"),
				queue.Runner(&job.Runner{Logger: fixture.Quiet, OnEvent: func(ev job.Event) {
					if ev.Kind == job.EventRequeued {
						requeued.Add(1)
					}
				}}))
			all.Go(func() { s.Drain(w) })
		}
		all.Wait()
		assert.EqualValues(s, jobs, requeued.Load())
		assert.EqualValues(s, jobs, s.int("SELECT COUNT(*) FROM "+s.table("jobs")+" WHERE crashes = 1 AND attempts = 1"+
			" AND reserved_token IS NULL"))
	}},
	{"a sweep clears all that lapsed in one pass, foreign types untouched, a bounded number at a time_Row3_Row5",
		func(s *sqlFixture) {
			const jobs, atOnce = 5000, 100
			s.lapsedRows(jobs, "plain", "foreign", "nobody")
			before := s.payloads()
			var inTx, most int
			q := s.broken(func(_ context.Context, statement string) error {
				switch {
				case statement == "BEGIN":
					inTx = 0
				case strings.HasPrefix(statement, "UPDATE "+s.table("jobs")):
					inTx++
					most = max(most, inTx)
				}
				return nil
			})
			r := fixture.NewRecord()
			s.Drain(s.Worker(q, []job.Handler{r.Handler()}, queue.Queues("elsewhere"), queue.QueryTimeout(time.Minute)))
			assert.Equal(s, queue.Counts{Ready: jobs}, s.Counts(""))
			assert.Empty(s, s.DeadLetters())
			assert.Equal(s, before, s.payloads(), "jobs and the numbers of their attempts")
			assert.LessOrEqual(s, most, atOnce)
			assert.Positive(s, most)
		}},
}

// lapsedRows are n jobs of some types whose leases lapsed, over seven queues.
func (s *sqlFixture) lapsedRows(n int, jobTypes ...string) {
	s.Helper()
	const queues = 7
	s.At(0)
	for i := range queues {
		var js []queue.Job
		for j := i; j < n; j += queues {
			js = append(js, fixture.Typed(jobTypes[j/queues%len(jobTypes)]))
		}
		_, err := s.Q.PushMany(s.Context(), js, queue.On(fmt.Sprintf("q%d", i)))
		require.NoError(s, err)
	}
	s.must(fmt.Sprintf("UPDATE %s SET reserved_token = 'gone.1', reserved_at = %d, lease_until = %d, attempts = 1",
		s.table("jobs"), s.Now, s.Now))
	s.At(1)
}

// payloads are the types and payloads of all jobs and their numbers of attempts, by the rows' ids.
func (s *sqlFixture) payloads() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, info := range s.List() {
		all[info.ID] = fmt.Sprintf("%s %s %s %d", info.Queue, info.Type, info.Envelope.Payload, info.Attempts)
	}
	return all
}
