package queuetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var leases = []behaviour{
	{"a killed worker's job comes back with the attempt and the crash counted_Row12", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		id := s.PushJob(sc.Job("A"))
		p := s.Stepped()
		require.Equal(s, "A", p.Claim())
		p.Leave()
		s.At(301)
		q := s.Stepped()
		require.Equal(s, "A", q.Claim())
		info := s.Inspect(id).Job
		assert.Equal(s, []int{2, 1}, []int{info.Attempts, info.Crashes})
		require.Len(s, info.Failures, 1)
		assert.Equal(s, job.ReasonCrashed, info.Failures[0].Reason)
		assert.Contains(s, info.Failures[0].Error, p.W.Name())
		assert.Equal(s, q.W.Name(), info.ReservedBy)
		q.End(nil)
		s.MustBeEmpty()
	}},
	{"a job that crashed three workers is dead_Row29", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 99, Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		var events []job.Event
		for range 3 {
			p := s.Stepped()
			require.Equal(s, "A", p.Claim())
			p.Leave()
			s.Advance(time.Hour)
		}
		w := s.Worker(s.Q, fixture.ScriptedHandlers, queue.Runner(&job.Runner{Logger: fixture.Quiet,
			OnEvent: func(ev job.Event) { events = append(events, ev) }}))
		assert.Zero(s, s.Drain(w))
		f := s.DeadLetters()[0]
		assert.Equal(s, job.ReasonCrashed, f.Reason)
		assert.Equal(s, 3, f.Crashes)
		require.Len(s, events, 1)
		assert.Equal(s, job.EventDead, events[0].Kind)
		assert.Len(s, sc.Failures(), 1, "Failed is called for what the sweep buries")
	}},
	{"a crash that a handler tells of is counted, on the last attempt too", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		w := s.Worker(s.Q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: errors.New("its process is gone")})
		}))
		assert.Equal(s, 2, s.Drain(w))
		f := s.DeadLetters()[0]
		assert.Equal(s, job.ReasonCrashed, f.Reason)
		assert.Equal(s, []int{2, 2}, []int{f.Attempts, f.Crashes})
	}},
	{"a job whose handler tells of a third crash is dead with each attempt in its history once_Row29",
		func(s *fixture.Fixture) {
			s.Push(fixture.Envelope("plain", "a"), queue.Tries(99), queue.Backoff(0))
			w := s.Worker(s.Q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
				return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: errors.New("its process is gone")})
			}))
			assert.Equal(s, 3, s.Drain(w))
			f := s.DeadLetters()[0]
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
	{"a job that kills its worker each time is dead after its tries_Row17", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 2, Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		for range 2 {
			p := s.Stepped()
			require.Equal(s, "A", p.Claim())
			p.Leave()
			s.Advance(time.Hour)
		}
		assert.Zero(s, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		assert.Equal(s, job.ReasonExhausted, s.DeadLetters()[0].Reason)
	}},
	{"who lost a job settles nothing, whatever he answers", func(s *fixture.Fixture) {
		for _, answer := range []error{nil, errors.New("no"), job.Permanent(errors.New("never"))} {
			sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
			id := s.PushJob(sc.Job("A"))
			late, owner := s.Stepped(), s.Stepped()
			require.Equal(s, "A", late.Claim())
			s.Advance(301 * time.Second)
			require.Equal(s, "A", owner.Claim())
			before := s.Inspect(id).Job
			late.End(answer)
			assert.Equal(s, job.ReasonLeaseLost, late.Event(job.EventUnsettled).Reason)
			assert.Equal(s, before, s.Inspect(id).Job)
			owner.End(nil)
			s.MustBeEmpty()
		}
		assert.Empty(s, s.DeadLetters())
	}},
	{"a job longer than its lease runs once_Row2_Row14_Row19", func(s *fixture.Fixture) {
		q := s.OpenLive()
		_, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"))
		require.NoError(s, err)
		var runs atomic.Int64
		const lease = 300 * time.Millisecond
		handlers := fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			runs.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(4 * lease): // the length of the job
			}
			return job.FromError(ctx.Err())
		})
		var all sync.WaitGroup
		for range 2 {
			w := s.Worker(s.OpenLive(), handlers, queue.Lease(lease), queue.RenewEvery(50*time.Millisecond))
			all.Go(func() { assert.NoError(s, w.Work(s.Context(), 1)) })
		}
		s.Poll("the job is done", func() bool { return s.Counts("").Size() == 0 })
		_, err = q.PushEnvelope(s.Context(), fixture.Envelope("plain", "for the other worker"))
		require.NoError(s, err)
		all.Wait()
		assert.EqualValues(s, 2, runs.Load())
	}},
	{"a lease not longer than the renewal's interval is refused_Row14_Row19", func(s *fixture.Fixture) {
		for _, every := range []time.Duration{time.Second, 2 * time.Second, -1} {
			w := s.Worker(s.Q, nil, queue.Lease(time.Second), queue.RenewEvery(every))
			var config *queue.ConfigError
			require.ErrorAs(s, w.Work(s.Context(), 0), &config)
			assert.Equal(s, "RenewEvery", config.Option)
		}
	}},
	{"a delayed job is in no lease_Row20", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Delay(10*30*time.Second))
		r := fixture.NewRecord()
		w := s.Worker(s.Q, []job.Handler{r.Handler()})
		for range 10 {
			assert.Zero(s, s.Drain(w))
			assert.Empty(s, s.Inspect(id).Job.ReservedBy)
			s.Advance(30 * time.Second)
		}
		assert.Equal(s, 1, s.Drain(w))
	}},
	{"a worker of the same host and pid is another worker_Row13", func(s *fixture.Fixture) {
		one, two := s.Worker(s.Q, nil), s.Worker(s.Q, nil)
		assert.NotEqual(s, one.Name(), two.Name())
	}},
}
