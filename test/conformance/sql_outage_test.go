package conformance

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var outageSQLCases = []sqlCase{
	{"a worker does not sweep what it has done and could not store yet", func(s *sqlFixture) {
		var refuse atomic.Bool
		var sweeps atomic.Int64
		refuse.Store(true)
		q := s.broken(func(_ context.Context, statement string) error {
			switch {
			case refuse.Load() && (s.completes(statement) || isRenewal(statement)):
				return errFault
			case isSweep(statement):
				sweeps.Add(1)
			}
			return nil
		})
		s.Push(fixture.Envelope("plain", "a"))
		var runs atomic.Int64
		w := s.Worker(q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			runs.Add(1)
			return job.Success()
		}), queue.Lease(300*time.Second))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		s.Poll("the job has run", func() bool { return runs.Load() == 1 })
		s.At(301)
		before := sweeps.Load()
		s.Poll("a sweep has come to its end, and the next one begins", func() bool { return sweeps.Load() >= before+3 })
		refuse.Store(false)
		s.Poll("its end is stored", func() bool { return s.Counts("").Size() == 0 })
		cancel()
		require.NoError(s, wait())
		assert.EqualValues(s, 1, runs.Load())
	}},
	{"ends are stored after an outage longer than the lease, and no crash is counted", func(s *sqlFixture) {
		const lease = 500 * time.Millisecond
		var down atomic.Bool
		q := s.broken(func(context.Context, string) error {
			if down.Load() {
				return errFault
			}
			return nil
		})
		began, through := make(chan struct{}, 2), make(chan struct{})
		var unsettled atomic.Int64
		w := s.Worker(q, fixture.Answers(func(_ context.Context, e job.Envelope) job.Result {
			began <- struct{}{}
			<-through
			if fixture.NameOf(e) == "fails" {
				return job.Retry(errors.New("no"))
			}
			return job.Success()
		}), queue.Lease(lease), queue.Runner(&job.Runner{Logger: fixture.Quiet, OnEvent: func(ev job.Event) {
			if ev.Kind == job.EventUnsettled {
				unsettled.Add(1)
			}
		}}))
		s.Push(fixture.Envelope("plain", "done"))
		again := s.Push(fixture.Envelope("plain", "fails"), queue.Backoff(time.Hour))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		for range 2 {
			fixture.Receive(s.Fixture, began, "a job")
		}
		down.Store(true)
		close(through)
		<-time.After(2 * lease) // the length of the outage
		s.At(1)
		down.Store(false)
		s.Poll("the ends are stored", func() bool { return s.Counts("") == queue.Counts{Delayed: 1} })
		cancel()
		require.NoError(s, wait())
		info := s.Inspect(again).Job
		assert.Equal(s, []int{1, 0}, []int{info.Attempts, info.Crashes})
		assert.Zero(s, unsettled.Load())
		assert.Empty(s, began, "no job ran twice")
	}},
	{"Shutdown waits once for a database that does not answer, not once for each job", func(s *sqlFixture) {
		const jobs = 40
		q := s.broken(func(ctx context.Context, statement string) error {
			if s.completes(statement) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		for range jobs {
			s.Push(fixture.Envelope("plain", "a"))
		}
		began, through := make(chan struct{}, jobs), make(chan struct{})
		w := s.Worker(q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			began <- struct{}{}
			<-through
			return job.Success()
		}), queue.Concurrency(jobs), queue.QueryTimeout(200*time.Millisecond))
		wait := s.Start(func() error { return w.Work(s.Context(), 0) })
		for range jobs {
			fixture.Receive(s.Fixture, began, "a job")
		}
		close(through)
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		require.NoError(s, w.Shutdown(ctx))
		assert.Less(s, time.Since(begin), jobs*100*time.Millisecond)
		require.NoError(s, wait())
		assert.EqualValues(s, jobs, s.Counts("").Reserved, "they run again when their leases have lapsed")
	}},
}

// isSweep tells the statement that looks for lapsed reservations.
func isSweep(statement string) bool { return strings.Contains(statement, "lease_until < ") }
