package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var works = []behaviour{
	{"what is finished leaves no row", func(s *fixture.Fixture) {
		for _, r := range []job.Result{job.Success(), job.Discard("not wanted"), job.Skip("held")} {
			s.Push(fixture.Envelope("plain", "a"))
			assert.Equal(s, 1, s.Drain(s.Worker(s.Q, fixture.Always(r))))
			s.MustBeEmpty()
		}
		assert.Empty(s, s.DeadLetters())
	}},
	{"a failed attempt comes again after its backoff, with its errors", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Backoff(10*time.Second))
		w := s.Worker(s.Q, fixture.Always(job.Retry(errors.New("down"))))
		assert.Equal(s, 1, s.Drain(w))
		info := s.Inspect(id).Job
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, s.Now+10_000, info.AvailableAt.UnixMilli())
		assert.Equal(s, 1, info.Attempts)
		require.Len(s, info.Failures, 1)
		assert.Equal(s, "down", info.Failures[0].Error)
		s.At(9.999)
		assert.Zero(s, s.Drain(w))
		s.At(10)
		assert.Equal(s, 1, s.Drain(w))
	}},
	{"RetryAfter goes before the row's backoff", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Backoff(10*time.Second))
		s.Drain(s.Worker(s.Q, fixture.Always(job.RetryAfter(errors.New("down"), 2*time.Second))))
		assert.Equal(s, s.Now+2000, s.List()[0].AvailableAt.UnixMilli())
	}},
	{"a dead job is a letter with all that is known", func(s *fixture.Fixture) {
		e := fixture.Envelope("plain", "a")
		e.Meta = map[string]any{"traceparent": "00-abc"}
		id := s.Push(e, queue.On("mail"), queue.Tries(2), queue.Backoff(0))
		w := s.Worker(s.Q, fixture.Always(job.Retry(fixture.Classed("SMTPError", "down"))), queue.Queues("mail"))
		assert.Equal(s, 2, s.Drain(w))
		s.MustBeEmpty()
		f := s.DeadLetters()[0]
		assert.Equal(s, "SMTPError: down", f.Exception())
		assert.Equal(s, []any{id, e.JobID, "plain", "mail", job.ReasonFailed, 2, w.Name()},
			[]any{f.Row, f.JobID, f.Type, f.Queue, f.Reason, f.Attempts, f.FailedBy})
		assert.Len(s, f.History, 2)
		assert.Equal(s, s.Now, f.FailedAt.UnixMilli())
		r := s.Inspect(id)
		assert.Nil(s, r.Job)
		assert.Equal(s, []queue.FailedJob{f}, r.Dead)
	}},
	{"a meta member goes through retries, death and replay_Row68", func(s *fixture.Fixture) {
		e := fixture.Envelope("plain", "a")
		e.Meta = map[string]any{"traceparent": "00-abc"}
		s.Push(e, queue.Tries(2), queue.Backoff(0))
		seen := make(chan string, 9)
		w := s.Worker(s.Q, fixture.Answers(func(_ context.Context, e job.Envelope) job.Result {
			seen <- e.MetaString("traceparent", "")
			return job.Retry(errors.New("no"))
		}))
		s.Drain(w)
		require.NoError(s, s.Q.Retry(s.Context(), s.DeadLetters()[0].ID))
		s.Drain(w)
		for range 4 {
			assert.Equal(s, "00-abc", fixture.Receive(s, seen, "a run"))
		}
	}},
	{"a deferral costs no attempt_Row60", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		w := s.Worker(s.Q, fixture.Always(job.Defer(time.Minute)))
		for range 20 {
			assert.Equal(s, 1, s.Drain(w))
			s.Advance(time.Minute)
		}
		info := s.Inspect(id).Job
		assert.Zero(s, info.Attempts)
		assert.Empty(s, info.Failures)
	}},
	{"Unlimited means no limit_Row60", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Tries(job.Unlimited), queue.Backoff(0))
		n, err := s.Worker(s.Q, fixture.Always(job.Retry(errors.New("no")))).WorkUntilEmpty(s.Context(), 50)
		require.NoError(s, err)
		assert.Equal(s, 50, n)
		assert.Equal(s, 50, s.Inspect(id).Job.Attempts)
	}},
	{"the worker's own policy is a limit too", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Tries(9), queue.Backoff(0))
		w := s.Worker(s.Q, fixture.Always(job.Retry(errors.New("no"))),
			queue.Runner(&job.Runner{Logger: fixture.Quiet, Policy: job.RetryPolicy{MaxAttempts: 3, Multiplier: 1}}))
		assert.Equal(s, 3, s.Drain(w))
		assert.Len(s, s.DeadLetters(), 1)
	}},
	{"time limits: the row's, the worker's, none_Row6", func(s *fixture.Fixture) {
		const none = time.Duration(-1)
		for _, c := range []struct {
			name              string
			row, worker, want time.Duration // want 0: no deadline
		}{
			{"neither", 0, 0, 0}, {"row none", none, 0, 0}, {"row", 5 * time.Second, 0, 5 * time.Second},
			{"worker none", 0, none, 0}, {"both none", none, none, 0}, {"row over worker's none", 5 * time.Second, none,
				5 * time.Second},
			{"worker", 0, 7 * time.Second, 7 * time.Second}, {"row's none over worker", none, 7 * time.Second, 0},
			{"row over worker", 5 * time.Second, 7 * time.Second, 5 * time.Second},
		} {
			s.Run(c.name, func(t *testing.T) {
				s := s.Sub(t)
				s.Push(fixture.Envelope("plain", "a"), queue.Timeout(c.row))
				left := make(chan time.Duration, 1)
				s.Drain(s.Worker(s.Q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
					deadline, ok := ctx.Deadline()
					if !ok {
						left <- 0
					} else {
						left <- time.Until(deadline)
					}
					return job.Success()
				}), queue.Runner(&job.Runner{Logger: fixture.Quiet, Timeout: c.worker})))
				got := fixture.Receive(s, left, "the deadline")
				assert.LessOrEqual(s, got, c.want)
				assert.Equal(s, c.want > 0, got > 0)
			})
		}
	}},
	{"a job over its time comes again with the reason timeout", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Timeout(10*time.Millisecond))
		s.Drain(s.Worker(s.Q, fixture.Answers(func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			return job.Retry(ctx.Err())
		})))
		assert.Equal(s, job.ReasonTimeout, s.Inspect(id).Job.Failures[0].Reason)
	}},
	{"a job's Backoff counts after a panic and a time limit that it ignores", func(s *fixture.Fixture) {
		for name, handle := range map[string]func(ctx context.Context, abandoned <-chan struct{}) error{
			"panic": func(context.Context, <-chan struct{}) error { panic("at the disco") },
			"deaf":  func(_ context.Context, abandoned <-chan struct{}) error { <-abandoned; return nil },
		} {
			s.Run(name, func(t *testing.T) {
				s := s.Sub(t)
				abandoned := make(chan struct{})
				sc := fixture.NewScript(s, &fixture.Script{Times: 3,
					Wait: func(n int) time.Duration { return time.Duration(n) * 7 * time.Second }})
				sc.Do = func(ctx context.Context, _ string) error { return handle(ctx, abandoned) }
				id := s.PushJob(sc.Job("A"), queue.Timeout(10*time.Millisecond), queue.Backoff(time.Hour))
				for n := 1; n <= 3; n++ {
					w := s.Worker(s.Q, fixture.ScriptedHandlers, queue.Runner(&job.Runner{Logger: fixture.Quiet,
						OnEvent: func(ev job.Event) {
							if ev.Kind == job.EventAbandoned {
								abandoned <- struct{}{}
							}
						}}))
					require.Equal(s, 1, s.Drain(w))
					if n < 3 {
						assert.Equal(s, s.Now+int64(n)*7000, s.Inspect(id).Job.AvailableAt.UnixMilli())
						s.Advance(time.Duration(n) * 7 * time.Second)
					}
				}
				assert.Len(s, s.DeadLetters(), 1)
				assert.Equal(s, []int{1, 2}, sc.Asked(), "asked once for each wait, and not where there is none")
			})
		}
	}},
	{"a Backoff that panics leaves the wait to the row", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 3, Do: fixture.Fails,
			Wait: func(int) time.Duration { panic("backoff") }})
		id := s.PushJob(sc.Job("A"), queue.Backoff(time.Minute))
		s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers))
		assert.Equal(s, s.Now+60_000, s.Inspect(id).Job.AvailableAt.UnixMilli())
	}},
	{"a dead letter is stored whatever its texts are", func(s *fixture.Fixture) {
		for name, text := range map[string]string{"NUL": "a\x00b", "no UTF-8": "a\xffb",
			"no end": strings.Repeat("é", 1<<20)} {
			s.Clear(s)
			s.Insert(`{"jobType":"plain","jobId":"i\u0000d","payload":{}}`)
			s.Drain(s.Worker(s.Q, fixture.Always(job.Fail(fixture.Classed(text, text)))))
			s.MustBeEmpty()
			letters := s.DeadLetters()
			require.Len(s, letters, 1, name)
			assert.Equal(s, "i\uFFFDd", letters[0].JobID)
			assert.True(s, utf8.ValidString(letters[0].Error), name)
			assert.NotContains(s, letters[0].Error, "\x00")
			assert.Greater(s, len(letters[0].Error), 2, name)
			require.NoError(s, s.Q.Retry(s.Context(), letters[0].ID))
		}
	}},
	{"a job of an unknown type is dead, or parked without an attempt_Row73", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("nobody", "a"), queue.Backoff(3*time.Second))
		park := s.Worker(s.Q, nil, queue.OnUnknown(queue.UnknownPark))
		assert.Equal(s, 1, s.Drain(park))
		info := s.Inspect(id).Job
		assert.Zero(s, info.Attempts)
		assert.Equal(s, s.Now+3000, info.AvailableAt.UnixMilli())
		s.At(3)
		s.Drain(s.Worker(s.Q, nil))
		assert.Equal(s, job.ReasonUnregistered, s.DeadLetters()[0].Reason)
	}},
	{"a payload that does not fit is dead after one try_Row18", func(s *fixture.Fixture) {
		s.Insert(`{"jobType":"scripted","payload":{"script":"text"}}`)
		s.Insert(`{"jobType":"scripted","payload":7}`)
		s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers))
		for _, f := range s.DeadLetters() {
			assert.Equal(s, job.ReasonDecode, f.Reason)
			assert.Equal(s, 1, f.Attempts)
		}
		assert.Len(s, s.DeadLetters(), 2)
	}},
	{"a job's own layers are around it", func(s *fixture.Fixture) {
		var order []string
		layer := func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				order = append(order, "before")
				r := next(ctx, e)
				order = append(order, "after")
				return r
			}
		}
		sc := fixture.NewScript(s, &fixture.Script{Layers: []job.Middleware{layer}, Do: func(context.Context, string) error {
			order = append(order, "run")
			return nil
		}})
		s.PushJob(sc.Job("A"))
		s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers))
		assert.Equal(s, []string{"before", "run", "after"}, order)
	}},
	{"a worker runs as many at once as it may, and no more", func(s *fixture.Fixture) {
		const jobs, most = 6, 3
		began, release := make(chan string, jobs), make(chan struct{})
		w := s.Worker(s.Q, fixture.Answers(func(_ context.Context, e job.Envelope) job.Result {
			began <- fixture.NameOf(e)
			<-release
			return job.Success()
		}), queue.Concurrency(most))
		for range jobs {
			s.Push(fixture.Envelope("plain", "a"))
		}
		wait := s.Start(func() error { return w.Work(s.Context(), jobs) })
		for range most {
			fixture.Receive(s, began, "a job")
		}
		assert.Equal(s, queue.Counts{Ready: jobs - most, Reserved: most}, s.Counts(""))
		close(release)
		require.NoError(s, wait())
		s.MustBeEmpty()
	}},
	{"a push wakes an idle worker of the same queue value", func(s *fixture.Fixture) {
		r := fixture.NewRecord()
		w := s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Poll(time.Hour))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		for i := range 3 {
			s.Push(fixture.Envelope("plain", "a"))
			fixture.Receive(s, r.Names, "job after push "+string(rune('1'+i)))
		}
		cancel()
		require.NoError(s, wait())
	}},
	{"a waker wakes a worker for another's push", func(s *fixture.Fixture) {
		r := fixture.NewRecord()
		w := s.Worker(s.OpenWaking(), []job.Handler{r.Handler()}, queue.Poll(time.Hour))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.Start(func() error { return w.Work(ctx, 0) })
		other := s.OpenWaking()
		for range 3 {
			_, err := other.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"))
			require.NoError(s, err)
			fixture.Receive(s, r.Names, "the job")
		}
		cancel()
		require.NoError(s, wait())
	}},
	{"the time of the database counts, not the worker's", func(s *fixture.Fixture) {
		s.At(-300)
		s.Push(fixture.Envelope("plain", "a"))
		s.At(300)
		s.Push(fixture.Envelope("plain", "b"))
		s.At(299)
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Equal(s, []string{"a"}, r.Take())
	}},
}
