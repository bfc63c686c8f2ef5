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

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// timelineElsewhere are the cases that need access to the inside of a store: the store's own tests
// have them.
var timelineElsewhere = map[string]bool{"dead_record_is_atomic": true}

// timelineCases are the cases that the vectors describe in words.
var timelineCases = map[string]func(s *fixture.Fixture){
	"hook_after_record": func(s *fixture.Fixture) {
		seen := make(chan int, 1)
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, Do: fixture.Fails,
			OnFail: func(context.Context, error) { seen <- len(s.DeadLetters()) }})
		s.PushJob(sc.Job("A"))
		s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers))
		assert.Equal(s, 1, fixture.Receive(s, seen, "the hook"))
	},
	"hook_raises": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, OnFail: func(context.Context, error) { panic("hook") }})
		sc.Do = func(_ context.Context, name string) error {
			if name == "A" {
				return errors.New("failed")
			}
			return nil
		}
		s.PushJob(sc.Job("A"))
		s.PushJob(sc.Job("B"))
		assert.Equal(s, 2, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		assert.Len(s, s.DeadLetters(), 1)
		s.MustBeEmpty()
	},
	"backoff_negative": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 3, Do: fixture.Fails,
			Wait: func(int) time.Duration { return -5 * time.Second }})
		s.PushJob(sc.Job("A"))
		_, err := s.Worker(s.Q, fixture.ScriptedHandlers).ProcessOne(s.Context())
		require.NoError(s, err)
		assert.Equal(s, s.Now, s.List()[0].AvailableAt.UnixMilli())
	},
	"worker_killer": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 3, Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		for range 10 {
			p := s.Stepped()
			if p.Claim() == "" {
				break
			}
			p.Leave()
			s.Advance(time.Hour)
		}
		assert.LessOrEqual(s, len(sc.Ran()), 3)
		assert.Len(s, s.DeadLetters(), 1)
	},
	"unknown_or_broken_payload": func(s *fixture.Fixture) {
		for _, payload := range []string{"not json", `{"payload":{}}`, `{"jobType":"nobody knows","payload":{}}`} {
			s.Insert(payload)
		}
		assert.Equal(s, 3, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		s.MustBeEmpty()
		var reasons []job.Reason
		for _, f := range s.DeadLetters() {
			reasons = append(reasons, f.Reason)
		}
		slices.Sort(reasons)
		assert.Equal(s, []job.Reason{job.ReasonDecode, job.ReasonDecode, job.ReasonUnregistered}, reasons)
	},
	"clear_keeps_dead_letters": func(s *fixture.Fixture) {
		s.Dead("x", "y")
		for range 3 {
			s.Push(fixture.Envelope("plain", "p"))
		}
		n, err := s.Q.Clear(s.Context(), "")
		require.NoError(s, err)
		assert.EqualValues(s, 3, n)
		s.MustBeEmpty()
		assert.Len(s, s.DeadLetters(), 2)
	},
	"retry_one": func(s *fixture.Fixture) {
		ids := s.Dead("A", "B")
		require.NoError(s, s.Q.Retry(s.Context(), ids[1]))
		assert.Equal(s, []string{"B"}, s.Pending())
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, ids[0], s.DeadLetters()[0].ID)
	},
	"retry_all": func(s *fixture.Fixture) {
		s.Dead("A", "B")
		n, err := s.Q.RetryAll(s.Context(), queue.Filter{})
		require.NoError(s, err)
		assert.Equal(s, 2, n)
		assert.Equal(s, []string{"A", "B"}, s.Pending())
		assert.Empty(s, s.DeadLetters())
	},
	"retry_gives_full_tries": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 3, Do: fixture.Fails})
		s.PushJob(sc.Job("A"))
		w := s.Worker(s.Q, fixture.ScriptedHandlers)
		assert.Equal(s, 3, s.Drain(w))
		require.NoError(s, s.Q.Retry(s.Context(), s.DeadLetters()[0].ID))
		assert.Equal(s, 3, s.Drain(w))
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, 1, s.DeadLetters()[0].Replays)
		assert.Len(s, s.DeadLetters()[0].History, 6, "what failed before the replay is still known")
	},
	"retry_unknown_id": func(s *fixture.Fixture) {
		s.Dead("A")
		for _, id := range []string{"999999999", "x"} {
			require.ErrorIs(s, s.Q.Retry(s.Context(), id), queue.ErrNotFound)
		}
		assert.Len(s, s.DeadLetters(), 1)
		s.MustBeEmpty()
	},
	"retry_twice_in_parallel": func(s *fixture.Fixture) {
		id := s.Dead("A")[0]
		one := s.Start(func() error { return s.Q.Retry(s.Context(), id) })
		two := s.Start(func() error { return s.Open().Retry(s.Context(), id) })
		errs := []error{one(), two()}
		assert.Contains(s, errs, nil)
		for _, err := range errs {
			if err != nil {
				assert.ErrorIs(s, err, queue.ErrNotFound)
			}
		}
		assert.Equal(s, []string{"A"}, s.Pending())
		assert.Empty(s, s.DeadLetters())
	},
	"retry_keeps_queue_name": func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("nobody", "A"), queue.On("export"))
		s.Drain(s.Worker(s.Q, nil, queue.Queues("export")))
		require.NoError(s, s.Q.Retry(s.Context(), s.DeadLetters()[0].ID))
		assert.EqualValues(s, 1, s.Counts("export").Ready)
	},
}

// runCommands checks the effects of the queue's commands.
func runCommands(s *fixture.Fixture) {
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
			continue // in other tests of this suite: work without end, size, clear, failed, retry, restart
		}
		s.Run(c.Command, func(t *testing.T) {
			s := s.Sub(t)
			for range c.Start.Ready {
				s.Push(fixture.Envelope("plain", "r"))
			}
			for range c.Start.Future {
				s.Push(fixture.Envelope("plain", "f"), queue.Delay(time.Minute))
			}
			var want struct{ Processed, Left int }
			require.NoError(s, json.Unmarshal(c.Expect, &want))
			r := fixture.NewRecord()
			w := s.Worker(s.Q, []job.Handler{r.Handler()})
			if c.Method == "work(3)" {
				require.NoError(s, s.Start(func() error { return w.Work(s.Context(), max) })())
			} else {
				n, err := w.WorkUntilEmpty(s.Context(), max)
				require.NoError(s, err)
				assert.Equal(s, want.Processed, n)
			}
			assert.Len(s, r.Take(), want.Processed)
			assert.EqualValues(s, want.Left, s.Counts("").Size())
		})
	}
	s.Run("queue:size", func(t *testing.T) {
		s := s.Sub(t)
		s.Push(fixture.Envelope("plain", "a"))
		s.Push(fixture.Envelope("plain", "b"))
		s.Push(fixture.Envelope("plain", "c"), queue.Delay(time.Minute))
		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		s.PushJob(sc.Job("reserved"), queue.Priority(3))
		p := s.Stepped()
		require.Equal(s, "reserved", p.Claim())
		assert.Equal(s, queue.Counts{Ready: 2, Delayed: 1, Reserved: 1}, s.Counts(""))
		assert.EqualValues(s, 4, s.Counts("").Size())
		p.End(nil)
	})
}
