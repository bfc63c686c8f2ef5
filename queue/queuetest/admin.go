package queuetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var deaths = []behaviour{
	{"a filter chooses by queue, type, class, reason and time", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.On("x"), queue.Tries(1))
		s.Push(fixture.Envelope("nobody", "b"), queue.On("y"))
		s.Drain(s.Worker(s.Q, fixture.Always(job.Retry(fixture.Classed("SMTPError", "down"))), queue.Queues("x,y")))
		s.At(60)
		s.Push(fixture.Envelope("nobody", "c"), queue.On("y"))
		s.Drain(s.Worker(s.Q, nil, queue.Queues("y")))
		second := func(n int64) time.Time { return time.UnixMilli(fixture.Epoch + n*1000) }
		for name, c := range map[string]struct {
			f    queue.Filter
			want int
		}{
			"all": {queue.Filter{}, 3}, "id": {queue.Filter{IDs: []string{s.DeadLetters()[0].ID, "0"}}, 1},
			"unknown ids": {queue.Filter{IDs: []string{"0", "no number"}},
				0}, "no number": {queue.Filter{IDs: []string{"no number"}}, 0},
			"queue": {queue.Filter{Queue: "x"}, 1}, "type": {queue.Filter{Types: []string{"nobody", "z"}}, 2},
			"class": {queue.Filter{ErrorClasses: []string{"SMTPError"}},
				1}, "reason": {queue.Filter{Reasons: []job.Reason{job.ReasonUnregistered}}, 2},
			"since": {queue.Filter{Since: second(60)}, 1}, "until": {queue.Filter{Until: second(60)}, 2},
			"both": {queue.Filter{Queue: "y", Until: second(60)}, 1},
		} {
			n := 0
			for _, err := range s.Q.Failed(s.Context(), c.f) {
				require.NoError(s, err)
				n++
			}
			assert.Equal(s, c.want, n, name)
			c.f.DryRun = true
			n, err := s.Q.RetryAll(s.Context(), c.f)
			require.NoError(s, err)
			assert.Equal(s, c.want, n, name)
		}
		byClass, err := s.Q.CountFailed(s.Context(), queue.Filter{Queue: "x"})
		require.NoError(s, err)
		assert.Equal(s, map[string]int{"SMTPError": 1}, byClass)
		assert.Len(s, s.DeadLetters(), 3, "a dry run changes nothing")
	}},
	{"RetryAll stops at its limit, the oldest first", func(s *fixture.Fixture) {
		s.Dead("a", "b", "c")
		var progress []string
		n, err := s.Q.RetryAll(s.Context(), queue.Filter{Limit: 2, Rate: 1000, Progress: func(done, of int) {
			progress = append(progress, fmt.Sprintf("%d/%d", done, of))
		}})
		require.NoError(s, err)
		assert.Equal(s, 2, n)
		assert.Equal(s, []string{"a", "b"}, s.Pending())
		assert.Equal(s, "2/2", progress[len(progress)-1])
	}},
	{"a replayed job has its id, its options and its key again", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Priority(3), queue.Tries(2), queue.Backoff(0),
			queue.Timeout(time.Second), queue.Unique("k", queue.TakenReject))
		s.Drain(s.Worker(s.Q, fixture.Always(job.Fail(errors.New("no")))))
		require.NoError(s, s.Q.Retry(s.Context(), s.DeadLetters()[0].ID))
		info := s.Inspect(id).Job
		require.NotNil(s, info)
		assert.Equal(s, []any{3, 2, 0, 0, "plain:k", time.Second, 1},
			[]any{info.Priority, info.MaxAttempts, info.Attempts, info.Crashes, info.UniqueKey, *info.Timeout, info.Replays})
		assert.Len(s, info.Failures, 1)
	}},
	{"dead letters are pruned by age only when asked_Row70", func(s *fixture.Fixture) {
		s.Dead("old")
		s.At(100)
		s.Drain(s.Worker(s.Q, nil))
		require.Len(s, s.DeadLetters(), 1)
		n, err := s.Q.Prune(s.Context(), "", 100*time.Second)
		require.NoError(s, err)
		assert.Zero(s, n, "exactly that old is not older")
		n, err = s.Q.Prune(s.Context(), "other", 0)
		require.NoError(s, err)
		assert.Zero(s, n)
		n, err = s.Q.Prune(s.Context(), "default", 99*time.Second)
		require.NoError(s, err)
		assert.EqualValues(s, 1, n)
		assert.Empty(s, s.DeadLetters())
	}},
	{"every change of state can be explained_Row74", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		w := s.Worker(s.Q, fixture.Always(job.Retry(errors.New("down"))))
		s.Drain(w)
		r := s.Inspect(id)
		require.Len(s, r.Dead, 1)
		assert.Equal(s, w.Name(), r.Dead[0].FailedBy)
		for i, h := range r.Dead[0].History {
			assert.Equal(s, i+1, h.Attempt)
			assert.Equal(s, "down", h.Error)
			assert.NotZero(s, h.At)
		}
		_, err := s.Q.Inspect(s.Context(), "999999999")
		assert.ErrorIs(s, err, queue.ErrNotFound)
	}},
}

var controls = []behaviour{
	{"a paused queue is left alone until it is resumed", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"))
		s.Push(fixture.Envelope("plain", "b"), queue.On("other"))
		r := fixture.NewRecord()
		w := s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Queues("default,other"))
		require.NoError(s, s.Q.Pause(s.Context(), "default"))
		require.NoError(s, s.Q.Pause(s.Context(), "default"))
		paused, err := s.Q.Paused(s.Context())
		require.NoError(s, err)
		assert.Equal(s, []string{"default"}, paused)
		s.Drain(w)
		assert.Equal(s, []string{"b"}, r.Take())
		require.NoError(s, s.Q.Resume(s.Context(), "default"))
		s.Drain(w)
		assert.Equal(s, []string{"a"}, r.Take())
	}},
	{"a pause of all queues is for all", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"))
		require.NoError(s, s.Q.Pause(s.Context(), ""))
		assert.Zero(s, s.Drain(s.Worker(s.Q, nil)))
		require.NoError(s, s.Q.Resume(s.Context(), ""))
		assert.Equal(s, 1, s.Drain(s.Worker(s.Q, nil)))
	}},
	{"a job that waits is cancelled", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		require.NoError(s, s.Q.Cancel(s.Context(), id))
		s.MustBeEmpty()
		assert.ErrorIs(s, s.Q.Cancel(s.Context(), id), queue.ErrNotFound)
		assert.ErrorIs(s, s.Q.Cancel(s.Context(), "x"), queue.ErrNotFound)
	}},
	{"a job that runs elsewhere is cancelled, its handler told_Row26", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		began, cause := make(chan struct{}), make(chan error, 1)
		events := make(chan job.Event, 9)
		w := s.Worker(s.Open(), fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.Runner(&job.Runner{Logger: fixture.Quiet, OnEvent: func(ev job.Event) { events <- ev }}))
		wait := s.Start(func() error { return w.Work(s.Context(), 1) })
		fixture.Receive(s, began, "the job")
		begin := time.Now()
		require.NoError(s, s.Q.Cancel(s.Context(), id))
		s.MustBeEmpty()
		assert.Equal(s, queue.ErrCancelled, fixture.Receive(s, cause, "the end of the context"))
		assert.Less(s, time.Since(begin), 5*time.Second, "a worker looks once a second")
		require.NoError(s, wait())
		s.MustBeEmpty()
		assert.Empty(s, s.DeadLetters())
		fixture.Receive(s, events, "started")
		end := fixture.Receive(s, events, "the end")
		assert.Equal(s, []any{job.EventDiscarded, queue.ErrCancelled}, []any{end.Kind, end.Err})
		assert.Empty(s, events)
	}},
	{"a cancelled job is no lost one, whatever its worker looks at first_Row26", func(s *fixture.Fixture) {
		for name, every := range map[string]time.Duration{"its lease": time.Millisecond, "its end": 20 * time.Second} {
			s.Run(name, func(t *testing.T) {
				s := s.Sub(t)
				id := s.Push(fixture.Envelope("plain", "a"))
				began, cancelled := make(chan struct{}), make(chan struct{})
				var events []job.Event
				w := s.Worker(s.Open(), fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
					close(began)
					if name == "its lease" {
						<-ctx.Done()
						assert.Equal(s, queue.ErrCancelled, context.Cause(ctx))
						return job.Retry(ctx.Err())
					}
					<-cancelled
					return job.Success()
				}), queue.RenewEvery(every), queue.Runner(&job.Runner{
					Logger: fixture.Quiet, OnEvent: func(ev job.Event) { events = append(events, ev) },
				}))
				wait := s.Start(func() error { _, err := w.ProcessOne(s.Context()); return err })
				fixture.Receive(s, began, "the job")
				require.NoError(s, s.Q.Cancel(s.Context(), id))
				close(cancelled)
				require.NoError(s, wait())
				require.Len(s, events, 2, "it began and it ended")
				assert.NotEqual(s, job.EventUnsettled, events[1].Kind)
				s.MustBeEmpty()
			})
		}
	}},
	{"a queue is cleared alone, and not of what runs", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		s.PushJob(sc.Job("runs"))
		p := s.Stepped()
		require.Equal(s, "runs", p.Claim())
		s.Push(fixture.Envelope("plain", "a"))
		s.Push(fixture.Envelope("plain", "b"), queue.Delay(time.Hour))
		s.Push(fixture.Envelope("plain", "c"), queue.On("other"))
		n, err := s.Q.Clear(s.Context(), "default")
		require.NoError(s, err)
		assert.EqualValues(s, 2, n)
		assert.Equal(s, queue.Counts{Ready: 1, Reserved: 1}, s.Counts(""))
		p.End(nil)
		n, err = s.Q.Clear(s.Context(), "")
		require.NoError(s, err)
		assert.EqualValues(s, 1, n)
	}},
	{"lists come in pages, in order", func(s *fixture.Fixture) {
		for i := range 250 {
			s.Push(fixture.Envelope("plain", fmt.Sprint(i)))
		}
		names := s.Pending()
		require.Len(s, names, 250)
		assert.Equal(s, []string{"0", "249"}, []string{names[0], names[249]})
		for info, err := range s.Q.List(s.Context(), "") { // stops when its reader does
			require.NoError(s, err)
			assert.Equal(s, "ready", info.State)
			break
		}
	}},
}
