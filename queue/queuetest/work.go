package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// answers handles jobs of the type "plain" with what the function says.
func answers(fn func(ctx context.Context, e job.Envelope) job.Result) []job.Handler {
	return []job.Handler{job.Func("plain", fn)}
}

func always(r job.Result) []job.Handler {
	return answers(func(context.Context, job.Envelope) job.Result { return r })
}

var works = []behaviour{
	{"what is finished leaves no row", func(s *stage) {
		for _, r := range []job.Result{job.Success(), job.Discard("not wanted"), job.Skip("held")} {
			s.push(envelope("plain", "a"))
			assert.Equal(s, 1, s.drain(s.worker(s.q, always(r))))
			s.mustBeEmpty()
		}
		assert.Empty(s, s.failed())
	}},
	{"a failed attempt comes again after its backoff, with its errors", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Backoff(10*time.Second))
		w := s.worker(s.q, always(job.Retry(errors.New("down"))))
		assert.Equal(s, 1, s.drain(w))
		info := s.inspect(id).Job
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, s.now+10_000, info.AvailableAt.UnixMilli())
		assert.Equal(s, 1, info.Attempts)
		require.Len(s, info.Failures, 1)
		assert.Equal(s, "down", info.Failures[0].Error)
		s.at(9.999)
		assert.Zero(s, s.drain(w))
		s.at(10)
		assert.Equal(s, 1, s.drain(w))
	}},
	{"RetryAfter goes before the row's backoff", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Backoff(10*time.Second))
		s.drain(s.worker(s.q, always(job.RetryAfter(errors.New("down"), 2*time.Second))))
		assert.Equal(s, s.now+2000, s.list()[0].AvailableAt.UnixMilli())
	}},
	{"a dead job is a letter with all that is known", func(s *stage) {
		e := envelope("plain", "a")
		e.Meta = map[string]any{"traceparent": "00-abc"}
		id := s.push(e, queue.On("mail"), queue.Tries(2), queue.Backoff(0))
		w := s.worker(s.q, always(job.Retry(classed{"SMTPError", "down"})), queue.Queues("mail"))
		assert.Equal(s, 2, s.drain(w))
		s.mustBeEmpty()
		f := s.failed()[0]
		assert.Equal(s, "SMTPError: down", f.Exception())
		assert.Equal(s, []any{id, e.JobID, "plain", "mail", job.ReasonFailed, 2, w.Name()},
			[]any{f.Row, f.JobID, f.Type, f.Queue, f.Reason, f.Attempts, f.FailedBy})
		assert.Len(s, f.History, 2)
		assert.Equal(s, s.now, f.FailedAt.UnixMilli())
		r := s.inspect(id)
		assert.Nil(s, r.Job)
		assert.Equal(s, []queue.FailedJob{f}, r.Dead)
	}},
	{"a meta member goes through retries, death and replay_Row68", func(s *stage) {
		e := envelope("plain", "a")
		e.Meta = map[string]any{"traceparent": "00-abc"}
		s.push(e, queue.Tries(2), queue.Backoff(0))
		seen := make(chan string, 9)
		w := s.worker(s.q, answers(func(_ context.Context, e job.Envelope) job.Result {
			seen <- e.MetaString("traceparent", "")
			return job.Retry(errors.New("no"))
		}))
		s.drain(w)
		require.NoError(s, s.q.Retry(s.Context(), s.failed()[0].ID))
		s.drain(w)
		for range 4 {
			assert.Equal(s, "00-abc", receive(s, seen, "a run"))
		}
	}},
	{"a deferral costs no attempt_Row60", func(s *stage) {
		id := s.push(envelope("plain", "a"))
		w := s.worker(s.q, always(job.Defer(time.Minute)))
		for range 20 {
			assert.Equal(s, 1, s.drain(w))
			s.advance(time.Minute)
		}
		info := s.inspect(id).Job
		assert.Zero(s, info.Attempts)
		assert.Empty(s, info.Failures)
	}},
	{"Unlimited means no limit_Row60", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Tries(job.Unlimited), queue.Backoff(0))
		n, err := s.worker(s.q, always(job.Retry(errors.New("no")))).WorkUntilEmpty(s.Context(), 50)
		require.NoError(s, err)
		assert.Equal(s, 50, n)
		assert.Equal(s, 50, s.inspect(id).Job.Attempts)
	}},
	{"the worker's own policy is a limit too", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(9), queue.Backoff(0))
		w := s.worker(s.q, always(job.Retry(errors.New("no"))), queue.Runner(&job.Runner{Logger: quiet, Policy: job.RetryPolicy{MaxAttempts: 3, Multiplier: 1}}))
		assert.Equal(s, 3, s.drain(w))
		assert.Len(s, s.failed(), 1)
	}},
	{"a job whose attempts are used up goes dead unrun", func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(2))
		s.db.must(s, "UPDATE "+s.table("jobs")+" SET attempts = 2")
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}))
		assert.Empty(s, r.take())
		assert.Equal(s, job.ReasonExhausted, s.failed()[0].Reason)
	}},
	{"time limits: the row's, the worker's, none_Row6", func(s *stage) {
		const none = time.Duration(-1)
		for _, c := range []struct {
			name              string
			row, worker, want time.Duration // want 0: no deadline
		}{
			{"neither", 0, 0, 0}, {"row none", none, 0, 0}, {"row", 5 * time.Second, 0, 5 * time.Second},
			{"worker none", 0, none, 0}, {"both none", none, none, 0}, {"row over worker's none", 5 * time.Second, none, 5 * time.Second},
			{"worker", 0, 7 * time.Second, 7 * time.Second}, {"row's none over worker", none, 7 * time.Second, 0},
			{"row over worker", 5 * time.Second, 7 * time.Second, 5 * time.Second},
		} {
			s.Run(c.name, func(t *testing.T) {
				s := s.sub(t)
				s.push(envelope("plain", "a"), queue.Timeout(c.row))
				left := make(chan time.Duration, 1)
				s.drain(s.worker(s.q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
					deadline, ok := ctx.Deadline()
					if !ok {
						left <- 0
					} else {
						left <- time.Until(deadline)
					}
					return job.Success()
				}), queue.Runner(&job.Runner{Logger: quiet, Timeout: c.worker})))
				got := receive(s, left, "the deadline")
				assert.LessOrEqual(s, got, c.want)
				assert.Equal(s, c.want > 0, got > 0)
			})
		}
	}},
	{"a job over its time comes again with the reason timeout", func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Timeout(10*time.Millisecond))
		s.drain(s.worker(s.q, answers(func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			return job.Retry(ctx.Err())
		})))
		assert.Equal(s, job.ReasonTimeout, s.inspect(id).Job.Failures[0].Reason)
	}},
	{"a job's Backoff counts after a panic and a time limit that it ignores", func(s *stage) {
		for name, handle := range map[string]func(ctx context.Context, abandoned <-chan struct{}) error{
			"panic": func(context.Context, <-chan struct{}) error { panic("at the disco") },
			"deaf":  func(_ context.Context, abandoned <-chan struct{}) error { <-abandoned; return nil },
		} {
			s.Run(name, func(t *testing.T) {
				s := s.sub(t)
				abandoned := make(chan struct{})
				sc := newScript(s, &script{tries: 3, backoff: func(n int) time.Duration { return time.Duration(n) * 7 * time.Second }})
				sc.handle = func(ctx context.Context, _ string) error { return handle(ctx, abandoned) }
				id := s.pushJob(sc.job("A"), queue.Timeout(10*time.Millisecond), queue.Backoff(time.Hour))
				for n := 1; n <= 3; n++ {
					w := s.worker(s.q, scriptedHandlers, queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) {
						if ev.Kind == job.EventAbandoned {
							abandoned <- struct{}{}
						}
					}}))
					require.Equal(s, 1, s.drain(w))
					if n < 3 {
						assert.Equal(s, s.now+int64(n)*7000, s.inspect(id).Job.AvailableAt.UnixMilli())
						s.advance(time.Duration(n) * 7 * time.Second)
					}
				}
				assert.Len(s, s.failed(), 1)
				assert.Equal(s, []int{1, 2}, sc.backoffs, "asked once for each wait, and not where there is none")
			})
		}
	}},
	{"a Backoff that panics leaves the wait to the row", func(s *stage) {
		sc := newScript(s, &script{tries: 3, handle: fails, backoff: func(int) time.Duration { panic("backoff") }})
		id := s.pushJob(sc.job("A"), queue.Backoff(time.Minute))
		s.drain(s.worker(s.q, scriptedHandlers))
		assert.Equal(s, s.now+60_000, s.inspect(id).Job.AvailableAt.UnixMilli())
	}},
	{"a dead letter is stored whatever its texts are", func(s *stage) {
		for name, text := range map[string]string{"NUL": "a\x00b", "no UTF-8": "a\xffb", "no end": strings.Repeat("é", 1<<20)} {
			s.clear()
			s.insert(`{"jobType":"plain","jobId":"i\u0000d","payload":{}}`)
			s.drain(s.worker(s.q, always(job.Fail(classed{text, text}))))
			s.mustBeEmpty()
			letters := s.failed()
			require.Len(s, letters, 1, name)
			assert.Equal(s, "i\uFFFDd", letters[0].JobID)
			assert.True(s, utf8.ValidString(letters[0].Error), name)
			assert.NotContains(s, letters[0].Error, "\x00")
			assert.Greater(s, len(letters[0].Error), 2, name)
			require.NoError(s, s.q.Retry(s.Context(), letters[0].ID))
		}
	}},
	{"a job of an unknown type is dead, or parked without an attempt_Row73", func(s *stage) {
		id := s.push(envelope("nobody", "a"), queue.Backoff(3*time.Second))
		park := s.worker(s.q, nil, queue.OnUnknown(queue.UnknownPark))
		assert.Equal(s, 1, s.drain(park))
		info := s.inspect(id).Job
		assert.Zero(s, info.Attempts)
		assert.Equal(s, s.now+3000, info.AvailableAt.UnixMilli())
		s.at(3)
		s.drain(s.worker(s.q, nil))
		assert.Equal(s, job.ReasonUnregistered, s.failed()[0].Reason)
	}},
	{"a payload that does not fit is dead after one try_Row18", func(s *stage) {
		s.insert(`{"jobType":"scripted","payload":{"script":"text"}}`)
		s.insert(`{"jobType":"scripted","payload":7}`)
		s.drain(s.worker(s.q, scriptedHandlers))
		for _, f := range s.failed() {
			assert.Equal(s, job.ReasonDecode, f.Reason)
			assert.Equal(s, 1, f.Attempts)
		}
		assert.Len(s, s.failed(), 2)
	}},
	{"a job's own layers are around it", func(s *stage) {
		var order []string
		layer := func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				order = append(order, "before")
				r := next(ctx, e)
				order = append(order, "after")
				return r
			}
		}
		sc := newScript(s, &script{layers: []job.Middleware{layer}, handle: func(context.Context, string) error {
			order = append(order, "run")
			return nil
		}})
		s.pushJob(sc.job("A"))
		s.drain(s.worker(s.q, scriptedHandlers))
		assert.Equal(s, []string{"before", "run", "after"}, order)
	}},
	{"a worker runs as many at once as it may, and no more", func(s *stage) {
		const jobs, most = 6, 3
		began, release := make(chan string, jobs), make(chan struct{})
		w := s.worker(s.q, answers(func(_ context.Context, e job.Envelope) job.Result {
			began <- nameOf(e)
			<-release
			return job.Success()
		}), queue.Concurrency(most))
		for range jobs {
			s.push(envelope("plain", "a"))
		}
		wait := s.start(func() error { return w.Work(s.Context(), jobs) })
		for range most {
			receive(s, began, "a job")
		}
		assert.Equal(s, queue.Counts{Ready: jobs - most, Reserved: most}, s.counts(""))
		close(release)
		require.NoError(s, wait())
		s.mustBeEmpty()
	}},
	{"a push wakes an idle worker of the same queue value", func(s *stage) {
		r := newRecord()
		w := s.worker(s.q, []job.Handler{r.handler()}, queue.Poll(time.Hour))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		for i := range 3 {
			s.push(envelope("plain", "a"))
			receive(s, r.names, "job after push "+string(rune('1'+i)))
		}
		cancel()
		require.NoError(s, wait())
	}},
	{"what comes in before the jobs that are being taken is taken too", func(s *stage) {
		for _, name := range []string{"a", "b", "c"} {
			s.push(envelope("plain", name))
		}
		var ran []string
		w := s.worker(s.q, answers(func(ctx context.Context, e job.Envelope) job.Result {
			var arg struct{ Name string }
			assert.NoError(s, e.Bind(&arg))
			if ran = append(ran, arg.Name); arg.Name == "b" { // as one that was pushed long ago in a transaction
				s.insert(`{"jobType":"plain","payload":{"name":"late"}}`)
				s.db.must(s, fmt.Sprintf("UPDATE %s SET available_at = %d WHERE reserved_token IS NULL AND payload LIKE '%%late%%'", s.table("jobs"), s.now-1000))
			}
			return job.Success()
		}), queue.Concurrency(1))
		assert.Equal(s, 4, s.drain(w))
		assert.ElementsMatch(s, []string{"a", "b", "c", "late"}, ran)
	}},
	{"a waker wakes a worker for another's push", func(s *stage) {
		if s.db.Waker == nil {
			s.Skip("this database has no waker")
		}
		r := newRecord()
		w := s.worker(s.open(), []job.Handler{r.handler()}, queue.Poll(time.Hour), queue.WakeBy(s.db.Waker))
		ctx, cancel := context.WithCancel(s.Context())
		wait := s.start(func() error { return w.Work(ctx, 0) })
		other := s.open(sqlqueue.WithNotify(s.db.Channel))
		for range 3 {
			_, err := other.PushEnvelope(s.Context(), envelope("plain", "a"))
			require.NoError(s, err)
			receive(s, r.names, "the job")
		}
		cancel()
		require.NoError(s, wait())
	}},
	{"the time of the database counts, not the worker's", func(s *stage) {
		s.at(-300)
		s.push(envelope("plain", "a"))
		s.at(300)
		s.push(envelope("plain", "b"))
		s.at(299)
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}))
		assert.Equal(s, []string{"a"}, r.take())
	}},
}
