package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// timelineTold are the cases that the vectors tell in words.
var timelineTold = map[string]func(s *stage){
	"hook_after_record": func(s *stage) {
		seen := make(chan int, 1)
		sc := newScript(s, &script{tries: 1, handle: fails, onFail: func(context.Context, error) { seen <- len(s.failed()) }})
		s.pushJob(sc.job("A"))
		s.drain(s.worker(s.q, scriptedHandlers))
		assert.Equal(s, 1, receive(s, seen, "the hook"))
	},
	"hook_raises": func(s *stage) {
		sc := newScript(s, &script{tries: 1, onFail: func(context.Context, error) { panic("hook") }})
		sc.handle = func(_ context.Context, name string) error {
			if name == "A" {
				return errors.New("failed")
			}
			return nil
		}
		s.pushJob(sc.job("A"))
		s.pushJob(sc.job("B"))
		assert.Equal(s, 2, s.drain(s.worker(s.q, scriptedHandlers)))
		assert.Len(s, s.failed(), 1)
		s.mustBeEmpty()
	},
	"backoff_negative": func(s *stage) {
		sc := newScript(s, &script{tries: 3, handle: fails, backoff: func(int) time.Duration { return -5 * time.Second }})
		s.pushJob(sc.job("A"))
		_, err := s.worker(s.q, scriptedHandlers).ProcessOne(s.Context())
		require.NoError(s, err)
		assert.Equal(s, s.now, s.list()[0].AvailableAt.UnixMilli())
	},
	"worker_killer": func(s *stage) {
		sc := newScript(s, &script{tries: 3, handle: held})
		s.pushJob(sc.job("A"))
		for range 10 {
			p := s.puppet()
			if p.claim() == "" {
				break
			}
			p.leave()
			s.advance(time.Hour)
		}
		assert.LessOrEqual(s, len(sc.ran()), 3)
		assert.Len(s, s.failed(), 1)
	},
	"unknown_or_broken_payload": func(s *stage) {
		for _, payload := range []string{"not json", `{"payload":{}}`, `{"jobType":"nobody knows","payload":{}}`} {
			s.insert(payload)
		}
		assert.Equal(s, 3, s.drain(s.worker(s.q, scriptedHandlers)))
		s.mustBeEmpty()
		var reasons []job.Reason
		for _, f := range s.failed() {
			reasons = append(reasons, f.Reason)
		}
		slices.Sort(reasons)
		assert.Equal(s, []job.Reason{job.ReasonDecode, job.ReasonDecode, job.ReasonUnregistered}, reasons)
	},
	"clear_keeps_dead_letters": func(s *stage) {
		s.dead("x", "y")
		for range 3 {
			s.push(envelope("plain", "p"))
		}
		n, err := s.q.Clear(s.Context(), "")
		require.NoError(s, err)
		assert.EqualValues(s, 3, n)
		s.mustBeEmpty()
		assert.Len(s, s.failed(), 2)
	},
	"retry_one": func(s *stage) {
		ids := s.dead("A", "B")
		require.NoError(s, s.q.Retry(s.Context(), ids[1]))
		assert.Equal(s, []string{"B"}, s.pending())
		require.Len(s, s.failed(), 1)
		assert.Equal(s, ids[0], s.failed()[0].ID)
	},
	"retry_all": func(s *stage) {
		s.dead("A", "B")
		n, err := s.q.RetryAll(s.Context(), queue.Filter{})
		require.NoError(s, err)
		assert.Equal(s, 2, n)
		assert.Equal(s, []string{"A", "B"}, s.pending())
		assert.Empty(s, s.failed())
	},
	"retry_gives_full_tries": func(s *stage) {
		sc := newScript(s, &script{tries: 3, handle: fails})
		s.pushJob(sc.job("A"))
		w := s.worker(s.q, scriptedHandlers)
		assert.Equal(s, 3, s.drain(w))
		require.NoError(s, s.q.Retry(s.Context(), s.failed()[0].ID))
		assert.Equal(s, 3, s.drain(w))
		require.Len(s, s.failed(), 1)
		assert.Equal(s, 1, s.failed()[0].Replays)
		assert.Len(s, s.failed()[0].History, 6, "what failed before the replay is still known")
	},
	"retry_unknown_id": func(s *stage) {
		s.dead("A")
		for _, id := range []string{"999999999", "x"} {
			require.ErrorIs(s, s.q.Retry(s.Context(), id), queue.ErrNotFound)
		}
		assert.Len(s, s.failed(), 1)
		s.mustBeEmpty()
	},
	"retry_twice_in_parallel": func(s *stage) {
		id := s.dead("A")[0]
		one := s.start(func() error { return s.q.Retry(s.Context(), id) })
		two := s.start(func() error { return s.open().Retry(s.Context(), id) })
		errs := []error{one(), two()}
		assert.Contains(s, errs, nil)
		for _, err := range errs {
			if err != nil {
				assert.ErrorIs(s, err, queue.ErrNotFound)
			}
		}
		assert.Equal(s, []string{"A"}, s.pending())
		assert.Empty(s, s.failed())
	},
	"retry_keeps_queue_name": func(s *stage) {
		s.push(envelope("nobody", "A"), queue.On("export"))
		s.drain(s.worker(s.q, nil, queue.Queues("export")))
		require.NoError(s, s.q.Retry(s.Context(), s.failed()[0].ID))
		assert.EqualValues(s, 1, s.counts("export").Ready)
	},
	"dead_record_is_atomic": func(s *stage) {
		s.push(envelope("nobody", "A"))
		s.db.must(s, "ALTER TABLE "+s.table("failed_jobs")+" RENAME TO "+s.table("failed_away"))
		w := s.worker(s.q, nil, queue.Lease(200*time.Millisecond))
		_, err := w.ProcessOne(s.Context())
		s.db.must(s, "ALTER TABLE "+s.table("failed_away")+" RENAME TO "+s.table("failed_jobs"))
		require.NoError(s, err)
		assert.EqualValues(s, 1, s.counts("").Size())
		assert.Empty(s, s.failed())
		s.advance(time.Hour)
		s.drain(w)
		s.mustBeEmpty()
		assert.Len(s, s.failed(), 1)
	},
}

func (s *stage) pushJob(j queue.Job, opts ...queue.PushOption) string {
	s.Helper()
	id, err := s.q.Push(s.Context(), j, opts...)
	require.NoError(s, err)
	return id
}

// insert is what another language does: one INSERT of queue and payload.
func (s *stage) insert(payload string) {
	s.Helper()
	s.db.must(s, "INSERT INTO "+s.table("jobs")+" (queue, payload, available_at) VALUES ("+s.place(1)+", "+s.place(2)+", "+s.place(3)+")", "default", payload, s.now)
}

// dead makes dead letters of jobs of these names, and returns their ids.
func (s *stage) dead(names ...string) (ids []string) {
	s.Helper()
	for _, name := range names {
		s.push(envelope("nobody", name))
	}
	s.drain(s.worker(s.q, nil, queue.Concurrency(1))) // so that they die in this order
	for _, f := range s.failed() {
		ids = append(ids, f.ID)
	}
	require.Len(s, ids, len(names))
	return ids
}

// pending are the names of the live jobs, in the order of their ids.
func (s *stage) pending() (names []string) {
	s.Helper()
	for _, info := range s.list() {
		names = append(names, nameOf(info.Envelope))
	}
	return names
}

// record is a handler of the type "plain" that keeps the names of what ran.
type record struct{ names chan string }

func newRecord() record { return record{make(chan string, 10_000)} }

func (r record) handler() job.Handler {
	return job.Func("plain", func(_ context.Context, e job.Envelope) job.Result {
		r.names <- nameOf(e)
		return job.Success()
	})
}

func (r record) take() (names []string) {
	for {
		select {
		case name := <-r.names:
			names = append(names, name)
		default:
			return names
		}
	}
}

// playCommands is what the commands of the queue's document mean.
func playCommands(s *stage) {
	v := vector[struct {
		Cases []struct {
			Command, Method string
			Start           struct {
				Ready  int
				Future int `json:"due_in_60s"`
			}
			Expect json.RawMessage
		}
	}](s, "db_queue_cli")
	limits := map[string]int{"workUntilEmpty(0)": 0, "work(3)": 3, "workUntilEmpty(3)": 3, "workUntilEmpty(9)": 9}
	for _, c := range v.Cases {
		max, ok := limits[c.Method]
		if !ok {
			continue // told by other tests of this suite: work for ever, size, clear, failed, retry, restart
		}
		s.Run(c.Command, func(t *testing.T) {
			s := s.sub(t)
			for range c.Start.Ready {
				s.push(envelope("plain", "r"))
			}
			for range c.Start.Future {
				s.push(envelope("plain", "f"), queue.Delay(time.Minute))
			}
			var want struct{ Processed, Left int }
			require.NoError(s, json.Unmarshal(c.Expect, &want))
			r := newRecord()
			w := s.worker(s.q, []job.Handler{r.handler()})
			if c.Method == "work(3)" {
				require.NoError(s, s.start(func() error { return w.Work(s.Context(), max) })())
			} else {
				n, err := w.WorkUntilEmpty(s.Context(), max)
				require.NoError(s, err)
				assert.Equal(s, want.Processed, n)
			}
			assert.Len(s, r.take(), want.Processed)
			assert.EqualValues(s, want.Left, s.counts("").Size())
		})
	}
	s.Run("queue:size", func(t *testing.T) {
		s := s.sub(t)
		s.push(envelope("plain", "a"))
		s.push(envelope("plain", "b"))
		s.push(envelope("plain", "c"), queue.Delay(time.Minute))
		sc := newScript(s, &script{handle: held})
		s.pushJob(sc.job("reserved"), queue.Priority(3))
		p := s.puppet()
		require.Equal(s, "reserved", p.claim())
		assert.Equal(s, queue.Counts{Ready: 2, Delayed: 1, Reserved: 1}, s.counts(""))
		assert.EqualValues(s, 4, s.counts("").Size())
		p.end(nil)
	})
}
