package queuetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var ends = []behaviour{
	{"the end of the context lets jobs finish_Row25", func(s *stage) {
		began, release := make(chan struct{}), make(chan struct{})
		s.push(envelope("plain", "runs"))
		s.push(envelope("plain", "waits"))
		w := s.worker(s.q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-release
			return job.FromError(ctx.Err())
		}), queue.Concurrency(1))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		receive(s, began, "the job")
		cancel()
		close(release)
		require.NoError(s, wait())
		assert.Equal(s, []string{"waits"}, s.pending())
	}},
	{"what cannot finish is given back without an attempt_Row24", func(s *stage) {
		began := make(chan struct{})
		id := s.push(envelope("plain", "a"))
		events := make(chan job.Event, 9)
		w := s.worker(s.q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			assert.Equal(s, queue.ErrInterrupted, context.Cause(ctx))
			return job.Retry(ctx.Err())
		}), queue.Grace(10*time.Millisecond), queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) { events <- ev }}))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		receive(s, began, "the job")
		cancel()
		require.NoError(s, wait())
		info := s.inspect(id).Job
		assert.Equal(s, "ready", info.State)
		assert.Zero(s, info.Attempts)
		assert.Empty(s, info.Failures)
		receive(s, events, "started")
		assert.Equal(s, job.ReasonInterrupted, receive(s, events, "interrupted").Reason)
	}},
	{"Shutdown names what does not return, in time_Row23", func(s *stage) {
		began, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		id := s.push(envelope("plain", "deaf"))
		w := s.worker(s.q, answers(func(context.Context, job.Envelope) job.Result {
			close(began)
			<-release
			return job.Success()
		}))
		wait := s.start(func() error { return w.Work(s.Context(), 0) })
		receive(s, began, "the job")
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		var abandoned *queue.AbandonedError
		require.ErrorAs(s, w.Shutdown(ctx), &abandoned)
		assert.Equal(s, []string{id}, abandoned.IDs)
		assert.Less(s, time.Since(begin), 5*time.Second)
		require.ErrorAs(s, wait(), &abandoned)
		assert.EqualValues(s, 1, s.counts("").Reserved, "its row stays reserved")
		took, err := w.ProcessOne(s.Context())
		require.NoError(s, err)
		assert.False(s, took, "after Shutdown")
	}},
	{"Shutdown does not wait for a Failed method that does not return_Row23", func(s *stage) {
		began, release := make(chan context.Context, 1), make(chan struct{})
		defer close(release)
		sc := newScript(s, &script{tries: 1, handle: fails, onFail: func(ctx context.Context, _ error) {
			began <- ctx
			<-release
		}})
		s.pushJob(sc.job("A"))
		w := s.worker(s.q, scriptedHandlers)
		wait := s.start(func() error { return w.Work(s.Context(), 0) })
		hook := receive(s, began, "the Failed method")
		ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		require.NoError(s, w.Shutdown(ctx), "its job is a dead letter, so nothing is abandoned")
		assert.Less(s, time.Since(begin), 5*time.Second)
		require.NoError(s, wait())
		assert.Equal(s, queue.ErrInterrupted, context.Cause(hook))
		assert.Len(s, s.failed(), 1)
	}},
	{"Shutdown of an idle worker returns at once", func(s *stage) {
		w := s.worker(s.q, nil, queue.Poll(time.Hour))
		wait := s.start(func() error { return w.Work(s.Context(), 0) })
		require.NoError(s, w.Shutdown(s.Context()))
		require.NoError(s, wait())
		require.NoError(s, w.Shutdown(s.Context()))
	}},
	{"ends at random points lose nothing_Row25", func(s *stage) {
		const rounds, jobs = 10, 20
		q := s.real()
		var ran atomic.Int64
		for round := range rounds {
			var js []queue.Job
			sc := newScript(s, &script{handle: func(context.Context, string) error { ran.Add(1); return nil }})
			for range jobs {
				js = append(js, sc.job("a"))
			}
			_, err := q.PushMany(s.Context(), js)
			require.NoError(s, err)
			ctx, cancel := context.WithTimeout(s.Context(), time.Duration(round)*3*time.Millisecond)
			require.NoError(s, s.worker(q, scriptedHandlers).Work(ctx, 0))
			cancel()
		}
		s.drain(s.worker(q, scriptedHandlers))
		assert.EqualValues(s, rounds*jobs, ran.Load())
		s.mustBeEmpty()
	}},
	{"Restart ends every worker that runs, and no later one", func(s *stage) {
		r := newRecord()
		began, through := make(chan struct{}, 2), make(chan struct{})
		var waits []func() error
		for range 2 {
			w := s.worker(s.open(), answers(func(context.Context, job.Envelope) job.Result {
				began <- struct{}{}
				<-through
				return job.Success()
			}), queue.Concurrency(1))
			waits = append(waits, s.start(func() error { return w.Work(s.Context(), 0) }))
			s.push(envelope("plain", "a"))
		}
		for range waits { // one that has not looked yet would begin after Restart
			receive(s, began, "each worker works")
		}
		close(through)
		s.poll("both are done", func() bool { return s.counts("").Size() == 0 })
		for range 2 { // a worker that began after the first call does not heed it
			require.NoError(s, s.q.Restart(s.Context()))
		}
		for _, wait := range waits {
			require.ErrorIs(s, wait(), queue.ErrRestart)
		}
		s.push(envelope("plain", "b"))
		s.drain(s.worker(s.q, []job.Handler{r.handler()}))
		assert.Equal(s, []string{"b"}, r.take())
	}},
}
