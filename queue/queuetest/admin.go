package queuetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var deaths = []behaviour{
	{"a filter chooses by queue, type, class, reason and time", func(s *stage) {
		s.push(envelope("plain", "a"), queue.On("x"), queue.Tries(1))
		s.push(envelope("nobody", "b"), queue.On("y"))
		s.drain(s.worker(s.q, always(job.Retry(classed{"SMTPError", "down"})), queue.Queues("x,y")))
		s.at(60)
		s.push(envelope("nobody", "c"), queue.On("y"))
		s.drain(s.worker(s.q, nil, queue.Queues("y")))
		second := func(n int64) time.Time { return time.UnixMilli(epoch + n*1000) }
		for name, c := range map[string]struct {
			f    queue.Filter
			want int
		}{
			"all": {queue.Filter{}, 3}, "id": {queue.Filter{IDs: []string{s.failed()[0].ID, "0"}}, 1},
			"unknown ids": {queue.Filter{IDs: []string{"0", "no number"}}, 0}, "no number": {queue.Filter{IDs: []string{"no number"}}, 0},
			"queue": {queue.Filter{Queue: "x"}, 1}, "type": {queue.Filter{Types: []string{"nobody", "z"}}, 2},
			"class": {queue.Filter{ErrorClasses: []string{"SMTPError"}}, 1}, "reason": {queue.Filter{Reasons: []job.Reason{job.ReasonUnregistered}}, 2},
			"since": {queue.Filter{Since: second(60)}, 1}, "until": {queue.Filter{Until: second(60)}, 2},
			"both": {queue.Filter{Queue: "y", Until: second(60)}, 1},
		} {
			n := 0
			for _, err := range s.q.Failed(s.Context(), c.f) {
				require.NoError(s, err)
				n++
			}
			assert.Equal(s, c.want, n, name)
			c.f.DryRun = true
			n, err := s.q.RetryAll(s.Context(), c.f)
			require.NoError(s, err)
			assert.Equal(s, c.want, n, name)
		}
		byClass, err := s.q.CountFailed(s.Context(), queue.Filter{Queue: "x"})
		require.NoError(s, err)
		assert.Equal(s, map[string]int{"SMTPError": 1}, byClass)
		assert.Len(s, s.failed(), 3, "a dry run changes nothing")
	}},
	{"RetryAll stops at its limit, the oldest first", func(s *stage) {
		s.dead("a", "b", "c")
		var progress []string
		n, err := s.q.RetryAll(s.Context(), queue.Filter{Limit: 2, Rate: 1000, Progress: func(done, of int) {
			progress = append(progress, fmt.Sprintf("%d/%d", done, of))
		}})
		require.NoError(s, err)
		assert.Equal(s, 2, n)
		assert.Equal(s, []string{"a", "b"}, s.pending())
		assert.Equal(s, "2/2", progress[len(progress)-1])
	}},
	{"a replayed job has its id, its options and its key again", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Priority(3), queue.Tries(2), queue.Backoff(0), queue.Timeout(time.Second), queue.Unique("k", queue.TakenReject))
		s.drain(s.worker(s.q, always(job.Fail(errors.New("no")))))
		require.NoError(s, s.q.Retry(s.Context(), s.failed()[0].ID))
		info := s.inspect(id).Job
		require.NotNil(s, info)
		assert.Equal(s, []any{3, 2, 0, 0, "plain:k", time.Second, 1},
			[]any{info.Priority, info.MaxAttempts, info.Attempts, info.Crashes, info.UniqueKey, *info.Timeout, info.Replays})
		assert.Len(s, info.Failures, 1)
	}},
	{"dead letters are pruned by age only when asked_Row70", func(s *stage) {
		s.dead("old")
		s.at(100)
		s.drain(s.worker(s.q, nil))
		require.Len(s, s.failed(), 1)
		n, err := s.q.Prune(s.Context(), "", 100*time.Second)
		require.NoError(s, err)
		assert.Zero(s, n, "exactly that old is not older")
		n, err = s.q.Prune(s.Context(), "other", 0)
		require.NoError(s, err)
		assert.Zero(s, n)
		n, err = s.q.Prune(s.Context(), "default", 99*time.Second)
		require.NoError(s, err)
		assert.EqualValues(s, 1, n)
		assert.Empty(s, s.failed())
	}},
	{"every change of state can be explained_Row74", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Tries(2), queue.Backoff(0))
		w := s.worker(s.q, always(job.Retry(errors.New("down"))))
		s.drain(w)
		r := s.inspect(id)
		require.Len(s, r.Dead, 1)
		assert.Equal(s, w.Name(), r.Dead[0].FailedBy)
		for i, h := range r.Dead[0].History {
			assert.Equal(s, i+1, h.Attempt)
			assert.Equal(s, "down", h.Error)
			assert.NotZero(s, h.At)
		}
		_, err := s.q.Inspect(s.Context(), "999999999")
		assert.ErrorIs(s, err, queue.ErrNotFound)
	}},
}

var controls = []behaviour{
	{"a paused queue is left alone until it is resumed", func(s *stage) {
		s.push(envelope("plain", "a"))
		s.push(envelope("plain", "b"), queue.On("other"))
		r := newRecord()
		w := s.worker(s.q, []job.Handler{r.handler()}, queue.Queues("default,other"))
		require.NoError(s, s.q.Pause(s.Context(), "default"))
		require.NoError(s, s.q.Pause(s.Context(), "default"))
		paused, err := s.q.Paused(s.Context())
		require.NoError(s, err)
		assert.Equal(s, []string{"default"}, paused)
		s.drain(w)
		assert.Equal(s, []string{"b"}, r.take())
		require.NoError(s, s.q.Resume(s.Context(), "default"))
		s.drain(w)
		assert.Equal(s, []string{"a"}, r.take())
	}},
	{"a pause of all queues is for all", func(s *stage) {
		s.push(envelope("plain", "a"))
		require.NoError(s, s.q.Pause(s.Context(), ""))
		assert.Zero(s, s.drain(s.worker(s.q, nil)))
		require.NoError(s, s.q.Resume(s.Context(), ""))
		assert.Equal(s, 1, s.drain(s.worker(s.q, nil)))
	}},
	{"a job that waits is cancelled", func(s *stage) {
		id := s.push(envelope("plain", "a"))
		require.NoError(s, s.q.Cancel(s.Context(), id))
		s.mustBeEmpty()
		assert.ErrorIs(s, s.q.Cancel(s.Context(), id), queue.ErrNotFound)
		assert.ErrorIs(s, s.q.Cancel(s.Context(), "x"), queue.ErrNotFound)
	}},
	{"a job that runs elsewhere is cancelled, its handler told_Row26", func(s *stage) {
		id := s.push(envelope("plain", "a"))
		began, cause := make(chan struct{}), make(chan error, 1)
		events := make(chan job.Event, 9)
		w := s.worker(s.open(), answers(func(ctx context.Context, _ job.Envelope) job.Result {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return job.Retry(ctx.Err())
		}), queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) { events <- ev }}))
		wait := s.start(func() error { return w.Work(s.Context(), 1) })
		receive(s, began, "the job")
		begin := time.Now()
		require.NoError(s, s.q.Cancel(s.Context(), id))
		s.mustBeEmpty()
		assert.Equal(s, queue.ErrCancelled, receive(s, cause, "the end of the context"))
		assert.Less(s, time.Since(begin), 5*time.Second, "a worker looks once a second")
		require.NoError(s, wait())
		s.mustBeEmpty()
		assert.Empty(s, s.failed())
		receive(s, events, "started")
		told := receive(s, events, "the end")
		assert.Equal(s, []any{job.EventDiscarded, queue.ErrCancelled}, []any{told.Kind, told.Err})
		assert.Empty(s, events)
	}},
	{"a cancelled job is no lost one, whatever its worker looks at first_Row26", func(s *stage) {
		for name, every := range map[string]time.Duration{"its lease": time.Millisecond, "its end": 20 * time.Second} {
			s.Run(name, func(t *testing.T) {
				s := s.sub(t)
				id := s.push(envelope("plain", "a"))
				began, cancelled := make(chan struct{}), make(chan struct{})
				var events []job.Event
				w := s.worker(s.open(), answers(func(ctx context.Context, _ job.Envelope) job.Result {
					close(began)
					if name == "its lease" {
						<-ctx.Done()
						assert.Equal(s, queue.ErrCancelled, context.Cause(ctx))
						return job.Retry(ctx.Err())
					}
					<-cancelled
					return job.Success()
				}), queue.RenewEvery(every), queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) { events = append(events, ev) }}))
				wait := s.start(func() error { _, err := w.ProcessOne(s.Context()); return err })
				receive(s, began, "the job")
				require.NoError(s, s.q.Cancel(s.Context(), id))
				close(cancelled)
				require.NoError(s, wait())
				require.Len(s, events, 2, "it began and it ended")
				assert.NotEqual(s, job.EventUnsettled, events[1].Kind)
				s.mustBeEmpty()
			})
		}
	}},
	{"a queue is cleared alone, and not of what runs", func(s *stage) {
		sc := newScript(s, &script{handle: held})
		s.pushJob(sc.job("runs"))
		p := s.puppet()
		require.Equal(s, "runs", p.claim())
		s.push(envelope("plain", "a"))
		s.push(envelope("plain", "b"), queue.Delay(time.Hour))
		s.push(envelope("plain", "c"), queue.On("other"))
		n, err := s.q.Clear(s.Context(), "default")
		require.NoError(s, err)
		assert.EqualValues(s, 2, n)
		assert.Equal(s, queue.Counts{Ready: 1, Reserved: 1}, s.counts(""))
		p.end(nil)
		n, err = s.q.Clear(s.Context(), "")
		require.NoError(s, err)
		assert.EqualValues(s, 1, n)
	}},
	{"lists come in pages, in order", func(s *stage) {
		for i := range 250 {
			s.push(envelope("plain", fmt.Sprint(i)))
		}
		names := s.pending()
		require.Len(s, names, 250)
		assert.Equal(s, []string{"0", "249"}, []string{names[0], names[249]})
		for info, err := range s.q.List(s.Context(), "") { // stops when its reader does
			require.NoError(s, err)
			assert.Equal(s, "ready", info.State)
			break
		}
	}},
}
