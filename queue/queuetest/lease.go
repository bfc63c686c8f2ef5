package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var leases = []behaviour{
	{"a killed worker's job comes back with the attempt and the crash counted_Row12", func(s *stage) {
		sc := newScript(s, &script{handle: held})
		id := s.pushJob(sc.job("A"))
		p := s.puppet()
		require.Equal(s, "A", p.claim())
		p.leave()
		s.at(301)
		q := s.puppet()
		require.Equal(s, "A", q.claim())
		info := s.inspect(id).Job
		assert.Equal(s, []int{2, 1}, []int{info.Attempts, info.Crashes})
		require.Len(s, info.Failures, 1)
		assert.Equal(s, job.ReasonCrashed, info.Failures[0].Reason)
		assert.Contains(s, info.Failures[0].Error, p.w.Name())
		assert.Equal(s, q.w.Name(), info.ReservedBy)
		q.end(nil)
		s.mustBeEmpty()
	}},
	{"after the first lapse at once, from the second on after the backoff from the lapse", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Backoff(60*time.Second))
		lapse := func(lease string, crashes int) {
			s.db.must(s, fmt.Sprintf("UPDATE %s SET reserved_token = 'x.1', reserved_at = 0, lease_until = %d, crashes = %d, attempts = 2",
				s.table("jobs"), s.now, crashes))
		}
		s.at(100)
		lapse("first", 0)
		s.at(100.001)
		r := newRecord()
		w := s.worker(s.q, []job.Handler{r.handler()})
		lapse("second", 1)
		s.at(110)
		assert.Zero(s, s.drain(w))
		assert.Equal(s, epoch+160_001, s.list()[0].AvailableAt.UnixMilli())
		s.at(160.001)
		assert.Equal(s, 1, s.drain(w))
	}},
	{"a job that crashed three workers is dead_Row29", func(s *stage) {
		sc := newScript(s, &script{tries: 99, handle: held})
		s.pushJob(sc.job("A"))
		var events []job.Event
		for range 3 {
			p := s.puppet()
			require.Equal(s, "A", p.claim())
			p.leave()
			s.advance(time.Hour)
		}
		w := s.worker(s.q, scriptedHandlers, queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) { events = append(events, ev) }}))
		assert.Zero(s, s.drain(w))
		f := s.failed()[0]
		assert.Equal(s, job.ReasonCrashed, f.Reason)
		assert.Equal(s, 3, f.Crashes)
		require.Len(s, events, 1)
		assert.Equal(s, job.EventDead, events[0].Kind)
		assert.Len(s, sc.failures(), 1, "Failed is called for what the sweep buries")
	}},
	{"a crash that a handler tells of is counted, on the last attempt too", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		w := s.worker(s.q, answers(func(context.Context, job.Envelope) job.Result {
			return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: errors.New("its process is gone")})
		}))
		assert.Equal(s, 2, s.drain(w))
		f := s.failed()[0]
		assert.Equal(s, job.ReasonCrashed, f.Reason)
		assert.Equal(s, []int{2, 2}, []int{f.Attempts, f.Crashes})
	}},
	{"a job whose handler tells of a third crash is dead with each attempt in its history once_Row29", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(99), queue.Backoff(0))
		w := s.worker(s.q, answers(func(context.Context, job.Envelope) job.Result {
			return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: errors.New("its process is gone")})
		}))
		assert.Equal(s, 3, s.drain(w))
		f := s.failed()[0]
		assert.Equal(s, job.ReasonCrashed, f.Reason)
		assert.Equal(s, []int{3, 3}, []int{f.Attempts, f.Crashes})
		require.Len(s, f.History, 3)
		for i, a := range f.History {
			assert.Equal(s, i+1, a.Attempt)
		}
		e, err := job.Decode([]byte(f.Payload))
		require.NoError(s, err)
		assert.Equal(s, 99, e.MaxAttempts)
	}},
	{"a job that kills its worker each time is dead after its tries_Row17", func(s *stage) {
		sc := newScript(s, &script{tries: 2, handle: held})
		s.pushJob(sc.job("A"))
		for range 2 {
			p := s.puppet()
			require.Equal(s, "A", p.claim())
			p.leave()
			s.advance(time.Hour)
		}
		assert.Zero(s, s.drain(s.worker(s.q, scriptedHandlers)))
		assert.Equal(s, job.ReasonExhausted, s.failed()[0].Reason)
	}},
	{"who lost a job settles nothing, whatever he answers", func(s *stage) {
		for _, answer := range []error{nil, errors.New("no"), job.Permanent(errors.New("never"))} {
			sc := newScript(s, &script{handle: held})
			id := s.pushJob(sc.job("A"))
			late, owner := s.puppet(), s.puppet()
			require.Equal(s, "A", late.claim())
			s.advance(301 * time.Second)
			require.Equal(s, "A", owner.claim())
			before := s.inspect(id).Job
			late.end(answer)
			assert.Equal(s, job.ReasonLeaseLost, late.event(job.EventUnsettled).Reason)
			assert.Equal(s, before, s.inspect(id).Job)
			owner.end(nil)
			s.mustBeEmpty()
		}
		assert.Empty(s, s.failed())
	}},
	{"a job longer than its lease runs once_Row2_Row14_Row19", func(s *stage) {
		q := s.real()
		_, err := q.PushEnvelope(s.Context(), envelope("plain", "a"))
		require.NoError(s, err)
		var runs atomic.Int64
		const lease = 300 * time.Millisecond
		handlers := answers(func(ctx context.Context, _ job.Envelope) job.Result {
			runs.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(4 * lease): // the length of the job
			}
			return job.FromError(ctx.Err())
		})
		var all sync.WaitGroup
		for range 2 {
			w := s.worker(s.real(), handlers, queue.Lease(lease), queue.RenewEvery(50*time.Millisecond))
			all.Go(func() { assert.NoError(s, w.Work(s.Context(), 1)) })
		}
		s.poll("the job is done", func() bool { return s.counts("").Size() == 0 })
		_, err = q.PushEnvelope(s.Context(), envelope("plain", "for the other worker"))
		require.NoError(s, err)
		all.Wait()
		assert.EqualValues(s, 2, runs.Load())
	}},
	{"a lease not longer than the renewal's interval is refused_Row14_Row19", func(s *stage) {
		for _, every := range []time.Duration{time.Second, 2 * time.Second, -1} {
			w := s.worker(s.q, nil, queue.Lease(time.Second), queue.RenewEvery(every))
			var config *queue.ConfigError
			require.ErrorAs(s, w.Work(s.Context(), 0), &config)
			assert.Equal(s, "RenewEvery", config.Option)
		}
	}},
	{"a handler learns that its lease was lost", func(s *stage) {
		q := s.real()
		id, err := q.PushEnvelope(s.Context(), envelope("plain", "a"))
		require.NoError(s, err)
		cause, began := make(chan error, 1), make(chan struct{})
		w := s.worker(q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.RenewEvery(10*time.Millisecond))
		wait := s.start(func() error { _, err := w.ProcessOne(s.Context()); return err })
		receive(s, began, "the job")
		s.db.must(s, "UPDATE "+s.table("jobs")+" SET reserved_token = 'other.1', seq = seq + 1")
		assert.Equal(s, job.ErrLeaseLost, receive(s, cause, "the end of the context"))
		require.NoError(s, wait())
		assert.Equal(s, "other", s.inspect(id).Job.ReservedBy)
	}},
	{"a delayed job is in no lease_Row20", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Delay(10*30*time.Second))
		r := newRecord()
		w := s.worker(s.q, []job.Handler{r.handler()})
		for range 10 {
			assert.Zero(s, s.drain(w))
			assert.Empty(s, s.inspect(id).Job.ReservedBy)
			s.advance(30 * time.Second)
		}
		assert.Equal(s, 1, s.drain(w))
	}},
	{"several sweeps at once end each lapsed reservation once_Row9", func(s *stage) {
		const jobs = 1000
		s.lapsedRows(jobs, "nobody")
		var requeued atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			w := s.worker(s.open(), nil, queue.Queues("elsewhere"), queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) {
				if ev.Kind == job.EventRequeued {
					requeued.Add(1)
				}
			}}))
			all.Go(func() { s.drain(w) })
		}
		all.Wait()
		assert.EqualValues(s, jobs, requeued.Load())
		assert.EqualValues(s, jobs, s.int("SELECT COUNT(*) FROM "+s.table("jobs")+" WHERE crashes = 1 AND attempts = 1 AND reserved_token IS NULL"))
	}},
	{"a sweep clears all that lapsed in one pass, foreign types untouched, a bounded number at a time_Row3_Row5", func(s *stage) {
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
		r := newRecord()
		s.drain(s.worker(q, []job.Handler{r.handler()}, queue.Queues("elsewhere"), queue.QueryTimeout(time.Minute)))
		assert.Equal(s, queue.Counts{Ready: jobs}, s.counts(""))
		assert.Empty(s, s.failed())
		assert.Equal(s, before, s.payloads(), "jobs and the numbers of their attempts")
		assert.LessOrEqual(s, most, atOnce)
		assert.Positive(s, most)
	}},
	{"a worker of the same host and pid is another worker_Row13", func(s *stage) {
		one, two := s.worker(s.q, nil), s.worker(s.q, nil)
		assert.NotEqual(s, one.Name(), two.Name())
	}},
}

// lapsedRows are n jobs of some types whose leases lapsed, over seven queues.
func (s *stage) lapsedRows(n int, jobTypes ...string) {
	s.Helper()
	const queues = 7
	s.at(0)
	for i := range queues {
		var js []queue.Job
		for j := i; j < n; j += queues {
			js = append(js, typed{jobTypes[j/queues%len(jobTypes)]})
		}
		_, err := s.q.PushMany(s.Context(), js, queue.On(fmt.Sprintf("q%d", i)))
		require.NoError(s, err)
	}
	s.db.must(s, fmt.Sprintf("UPDATE %s SET reserved_token = 'gone.1', reserved_at = %d, lease_until = %d, attempts = 1", s.table("jobs"), s.now, s.now))
	s.at(1)
}

// A typed job is of the type that it is told.
type typed struct{ jobType string }

func (j typed) JobType() string            { return j.jobType }
func (typed) Handle(context.Context) error { return nil }

// payloads are the types and payloads of all jobs and their numbers of attempts, by the rows' ids.
func (s *stage) payloads() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, info := range s.list() {
		all[info.ID] = fmt.Sprintf("%s %s %s %d", info.Queue, info.Type, info.Envelope.Payload, info.Attempts)
	}
	return all
}
