package queuetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var ends = []behaviour{
	{"the end of the context lets jobs finish_Row25", func(s *fixture.Fixture) {
		began, release := make(chan struct{}), make(chan struct{})
		s.Push(fixture.Envelope("plain", "runs"))
		s.Push(fixture.Envelope("plain", "waits"))
		w := s.Worker(s.Q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-release
			return job.FromError(ctx.Err())
		}), queue.Concurrency(1))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		fixture.Receive(s, began, "the job")
		cancel()
		close(release)
		require.NoError(s, wait())
		assert.Equal(s, []string{"waits"}, s.Pending())
	}},
	{"what cannot finish is given back without an attempt_Row24", func(s *fixture.Fixture) {
		began := make(chan struct{})
		id := s.Push(fixture.Envelope("plain", "a"))
		events := make(chan job.Event, 9)
		w := s.Worker(s.Q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			assert.Equal(s, queue.ErrInterrupted, context.Cause(ctx))
			return job.Retry(ctx.Err())
		}), queue.Grace(10*time.Millisecond), queue.Runner(&job.Runner{
			Logger: fixture.Quiet, OnEvent: func(ev job.Event) { events <- ev },
		}))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		fixture.Receive(s, began, "the job")
		cancel()
		require.NoError(s, wait())
		info := s.Inspect(id).Job
		assert.Equal(s, "ready", info.State)
		assert.Zero(s, info.Attempts)
		assert.Empty(s, info.Failures)
		fixture.Receive(s, events, "started")
		assert.Equal(s, job.ReasonInterrupted, fixture.Receive(s, events, "interrupted").Reason)
	}},
	{"the last job of a run may take longer than the grace", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "slow"))
		w := s.Worker(s.Q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			select {
			case <-ctx.Done():
				return job.Retry(context.Cause(ctx))
			case <-time.After(200 * time.Millisecond): // many times the grace
				return job.Success()
			}
		}), queue.Grace(time.Millisecond))
		took, err := w.ProcessOne(s.Context())
		require.NoError(s, err)
		assert.True(s, took)
		assert.Zero(s, s.Counts("").Size(), "it ran to its end")
	}},
	{"Shutdown names what does not return, in time_Row23", func(s *fixture.Fixture) {
		began, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		id := s.Push(fixture.Envelope("plain", "deaf"))
		w := s.Worker(s.Q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			close(began)
			<-release
			return job.Success()
		}))
		wait := s.Start(func() error { return w.Work(s.Context(), 0) })
		fixture.Receive(s, began, "the job")
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		var abandoned *queue.AbandonedError
		require.ErrorAs(s, w.Shutdown(ctx), &abandoned)
		assert.Equal(s, []string{id}, abandoned.IDs)
		assert.Less(s, time.Since(begin), 5*time.Second)
		require.ErrorAs(s, wait(), &abandoned)
		assert.EqualValues(s, 1, s.Counts("").Reserved, "its row stays reserved")
		took, err := w.ProcessOne(s.Context())
		require.NoError(s, err)
		assert.False(s, took, "after Shutdown")
	}},
	{"Shutdown does not wait for a Failed method that does not return_Row23", func(s *fixture.Fixture) {
		began, release := make(chan context.Context, 1), make(chan struct{})
		defer close(release)
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, Do: fixture.Fails, OnFail: func(ctx context.Context, _ error) {
			began <- ctx
			<-release
		}})
		s.PushJob(sc.Job("A"))
		w := s.Worker(s.Q, fixture.ScriptedHandlers)
		wait := s.Start(func() error { return w.Work(s.Context(), 0) })
		hook := fixture.Receive(s, began, "the Failed method")
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		require.NoError(s, w.Shutdown(ctx), "its job is a dead letter, so nothing is abandoned")
		assert.Less(s, time.Since(begin), 5*time.Second)
		require.NoError(s, wait())
		assert.Equal(s, queue.ErrInterrupted, context.Cause(hook))
		assert.Len(s, s.DeadLetters(), 1)
	}},
	{"Shutdown of an idle worker returns at once", func(s *fixture.Fixture) {
		w := s.Worker(s.Q, nil, queue.Poll(time.Hour))
		wait := s.Start(func() error { return w.Work(s.Context(), 0) })
		require.NoError(s, w.Shutdown(s.Context()))
		require.NoError(s, wait())
		require.NoError(s, w.Shutdown(s.Context()))
	}},
	{"ends at random points lose nothing_Row25", func(s *fixture.Fixture) {
		const rounds, jobs = 10, 20
		q := s.OpenLive()
		var ran atomic.Int64
		for round := range rounds {
			var js []queue.Job
			sc := fixture.NewScript(s, &fixture.Script{Do: func(context.Context, string) error { ran.Add(1); return nil }})
			for range jobs {
				js = append(js, sc.Job("a"))
			}
			_, err := q.PushMany(s.Context(), js)
			require.NoError(s, err)
			ctx, cancel := context.WithTimeout(s.Context(), time.Duration(round)*3*time.Millisecond)
			require.NoError(s, s.Worker(q, fixture.ScriptedHandlers).Work(ctx, 0))
			cancel()
		}
		s.Drain(s.Worker(q, fixture.ScriptedHandlers))
		assert.EqualValues(s, rounds*jobs, ran.Load())
		s.MustBeEmpty()
	}},
	{"Restart ends every worker that runs, and no later one", func(s *fixture.Fixture) {
		r := fixture.NewRecord()
		began, through := make(chan struct{}, 2), make(chan struct{})
		var waits []func() error
		for range 2 {
			w := s.Worker(s.Open(), fixture.Answers(func(context.Context, job.Envelope) job.Result {
				began <- struct{}{}
				<-through
				return job.Success()
			}), queue.Concurrency(1))
			waits = append(waits, s.Start(func() error { return w.Work(s.Context(), 0) }))
			s.Push(fixture.Envelope("plain", "a"))
		}
		for range waits { // one that has not looked yet would begin after Restart
			fixture.Receive(s, began, "each worker works")
		}
		close(through)
		s.Poll("both are done", func() bool { return s.Counts("").Size() == 0 })
		for range 2 { // a worker that began after the first call does not heed it
			require.NoError(s, s.Q.Restart(s.Context()))
		}
		for _, wait := range waits {
			require.ErrorIs(s, wait(), queue.ErrRestart)
		}
		s.Push(fixture.Envelope("plain", "b"))
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Equal(s, []string{"b"}, r.Take())
	}},
}
