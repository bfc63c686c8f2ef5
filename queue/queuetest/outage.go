package queuetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// isSweep tells the statement that looks for lapsed reservations.
func isSweep(statement string) bool { return strings.Contains(statement, "lease_until < ") }

// outages are what a worker makes of the jobs that it ran when the database does not take their ends for a while.
var outages = []behaviour{
	{"a worker does not sweep what it has done and could not store yet", func(s *stage) {
		var refuse atomic.Bool
		var sweeps atomic.Int64
		refuse.Store(true)
		q := s.broken(func(_ context.Context, statement string) error {
			switch {
			case refuse.Load() && (s.settles(statement) || isRenewal(statement)):
				return errFault
			case isSweep(statement):
				sweeps.Add(1)
			}
			return nil
		})
		s.push(envelope("plain", "a"))
		var runs atomic.Int64
		w := s.worker(q, answers(func(context.Context, job.Envelope) job.Result {
			runs.Add(1)
			return job.Success()
		}), queue.Lease(300*time.Second))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		s.poll("the job has run", func() bool { return runs.Load() == 1 })
		s.at(301)
		before := sweeps.Load()
		s.poll("a sweep has come to its end, and the next one begins", func() bool { return sweeps.Load() >= before+3 })
		refuse.Store(false)
		s.poll("its end is stored", func() bool { return s.counts("").Size() == 0 })
		cancel()
		require.NoError(s, wait())
		assert.EqualValues(s, 1, runs.Load())
	}},
	{"ends are stored after an outage longer than the lease, and no crash is counted", func(s *stage) {
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
		w := s.worker(q, answers(func(_ context.Context, e job.Envelope) job.Result {
			began <- struct{}{}
			<-through
			if nameOf(e) == "fails" {
				return job.Retry(errors.New("no"))
			}
			return job.Success()
		}), queue.Lease(lease), queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) {
			if ev.Kind == job.EventUnsettled {
				unsettled.Add(1)
			}
		}}))
		s.push(envelope("plain", "done"))
		again := s.push(envelope("plain", "fails"), queue.Backoff(time.Hour))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		for range 2 {
			receive(s, began, "a job")
		}
		down.Store(true)
		close(through)
		<-time.After(2 * lease) // the length of the outage
		s.at(1)
		down.Store(false)
		s.poll("the ends are stored", func() bool { return s.counts("") == queue.Counts{Delayed: 1} })
		cancel()
		require.NoError(s, wait())
		info := s.inspect(again).Job
		assert.Equal(s, []int{1, 0}, []int{info.Attempts, info.Crashes})
		assert.Zero(s, unsettled.Load())
		assert.Empty(s, began, "no job ran twice")
	}},
	{"Shutdown waits once for a database that does not answer, not once for each job", func(s *stage) {
		const jobs = 40
		q := s.broken(func(ctx context.Context, statement string) error {
			if s.settles(statement) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		for range jobs {
			s.push(envelope("plain", "a"))
		}
		began, through := make(chan struct{}, jobs), make(chan struct{})
		w := s.worker(q, answers(func(context.Context, job.Envelope) job.Result {
			began <- struct{}{}
			<-through
			return job.Success()
		}), queue.Concurrency(jobs), queue.QueryTimeout(200*time.Millisecond))
		wait := s.start(func() error { return w.Work(s.Context(), 0) })
		for range jobs {
			receive(s, began, "a job")
		}
		close(through)
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		require.NoError(s, w.Shutdown(ctx))
		assert.Less(s, time.Since(begin), jobs*100*time.Millisecond)
		require.NoError(s, wait())
		assert.EqualValues(s, jobs, s.counts("").Reserved, "they run again when their leases have lapsed")
	}},
}
