package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// playSync is the sync driver, which needs no database.
func playSync(s *stage) {
	v := vector[struct{ Cases []struct{ Name string } }](s, "sync_driver")
	told := map[string]func(s *stage, q *queue.Queue){
		"runs_before_push_returns": func(s *stage, q *queue.Queue) {
			sc := newScript(s, &script{})
			_, err := q.Push(s.Context(), sc.job("A"))
			require.NoError(s, err)
			assert.Equal(s, []string{"A"}, sc.ran())
			c, err := q.Counts(s.Context(), "")
			require.NoError(s, err)
			assert.Zero(s, c.Size())
			s.mustBeEmpty()
		},
		"delay": func(s *stage, q *queue.Queue) {
			sc := newScript(s, &script{})
			_, err := q.Push(s.Context(), sc.job("A"), queue.Delay(time.Hour))
			require.NoError(s, err)
			assert.Equal(s, []string{"A"}, sc.ran())
		},
		"queue_name": func(s *stage, q *queue.Queue) {
			sc := newScript(s, &script{})
			_, err := q.PushMany(s.Context(), []queue.Job{sc.job("A"), sc.job("B")}, queue.On("other"))
			require.NoError(s, err)
			assert.Equal(s, []string{"A", "B"}, sc.ran())
		},
		"failure": func(s *stage, q *queue.Queue) {
			sc := newScript(s, &script{tries: 3, handle: fails, backoff: func(int) time.Duration { return time.Hour }})
			_, err := q.Push(s.Context(), sc.job("A"))
			var dead *job.DeadError
			require.ErrorAs(s, err, &dead)
			assert.Equal(s, "failed", dead.Error())
			assert.Len(s, sc.ran(), 3)
			assert.Len(s, sc.failures(), 1)
		},
		"nested_push": func(s *stage, q *queue.Queue) {
			var sc *script
			sc = newScript(s, &script{tries: 1, handle: func(ctx context.Context, name string) error {
				_, err := q.Push(ctx, sc.job(name+"A"))
				return err
			}})
			_, err := q.Push(s.Context(), sc.job(""))
			require.ErrorContains(s, err, "16 deep")
			assert.Len(s, sc.ran(), 16)
		},
	}
	for _, c := range v.Cases {
		s.Run(c.Name, func(t *testing.T) {
			require.NotNil(t, told[c.Name], "the suite has no test for this case")
			reg, err := job.NewRegistry(scriptedHandlers...)
			require.NoError(t, err)
			told[c.Name](s.sub(t), queue.NewSync(reg, queue.WithLogger(quiet)))
		})
	}
}

// playWorkerRules is what the vectors say about a worker around the pipeline. Its backoff strategies, scaling and
// settings are another system's.
func playWorkerRules(s *stage) {
	v := vector[struct {
		ClaimOrder struct {
			Priorities map[string]int
			Cases      []json.RawMessage
		} `json:"claim_order"`
		Unique struct{ Cases []struct{ Name string } } `json:"unique_dispatch"`
	}](s, "queuety_worker")
	s.Run("priorities", func(t *testing.T) {
		s := s.sub(t)
		levels := v.ClaimOrder.Priorities
		require.Equal(s, map[string]int{"low": 0, "normal": 1, "high": 2, "urgent": 3}, levels)
		for name, level := range levels {
			s.push(envelope("plain", name), queue.Priority(level))
		}
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1)))
		assert.Equal(s, []string{"urgent", "high", "normal", "low"}, r.take())
	})
	for _, raw := range v.ClaimOrder.Cases {
		playClaimOrder(s, raw, v.ClaimOrder.Priorities)
	}
	told := map[string]func(s *stage, first string, push func(jobType, key string) string){
		"same_handler_and_payload_pending": func(s *stage, first string, push func(jobType, key string) string) {
			assert.Equal(s, first, push("plain", "k"))
		},
		"same_while_processing": func(s *stage, first string, push func(jobType, key string) string) {
			var second string
			s.drain(s.worker(s.q, answers(func(context.Context, job.Envelope) job.Result {
				second = push("plain", "k")
				return job.Success()
			})))
			assert.Equal(s, first, second)
		},
		"after_completion": func(s *stage, first string, push func(jobType, key string) string) {
			s.drain(s.worker(s.q, always(job.Success())))
			assert.NotEqual(s, first, push("plain", "k"))
		},
		"other_payload": func(s *stage, first string, push func(jobType, key string) string) {
			assert.NotEqual(s, first, push("plain", "other"))
		},
		"other_handler": func(s *stage, first string, push func(jobType, key string) string) {
			assert.NotEqual(s, first, push("other", "k"))
		},
		"two_callers_at_once": func(*stage, string, func(string, string) string) {}, // told under "unique"
	}
	for _, c := range v.Unique.Cases {
		s.Run(c.Name, func(t *testing.T) {
			s := s.sub(t)
			require.NotNil(s, told[c.Name], "the suite has no test for this case")
			push := func(jobType, key string) string {
				return s.push(envelope(jobType, "a"), queue.Unique(key, queue.Existing))
			}
			told[c.Name](s, push("plain", "k"), push)
		})
	}
	s.Run("attempts", func(t *testing.T) {
		s := s.sub(t)
		sc := newScript(s, &script{handle: held})
		id := s.pushJob(sc.job("A"))
		p := s.puppet()
		p.claim()
		info := s.inspect(id).Job
		assert.Equal(s, 1, info.Attempts)
		assert.Equal(s, s.now, info.ReservedAt.UnixMilli())
		assert.Equal(s, s.now+300_000, info.LeaseUntil.UnixMilli())
		p.end(errors.New("no"))
		assert.Equal(s, 1, s.inspect(id).Job.Attempts)
		assert.True(s, s.inspect(id).Job.ReservedAt.IsZero())
	})
}

func playClaimOrder(s *stage, raw json.RawMessage, levels map[string]int) {
	var c struct {
		Push         [][2]any
		First        any   `json:"expect_first"`
		SamePriority []int `json:"push_same_priority"`
		Queues       string
		OneInEach    bool  `json:"one_job_in_each"`
		Order        []any `json:"expect_order"`
		Paused       []string
		Note         string
	}
	require.NoError(s, json.Unmarshal(raw, &c))
	s.Run(strings.Trim(string(raw), "{} \n")[:24], func(t *testing.T) {
		s := s.sub(t)
		r := newRecord()
		run := func(opts ...queue.WorkerOption) []string {
			s.drain(s.worker(s.q, []job.Handler{r.handler()}, append(opts, queue.Concurrency(1))...))
			return r.take()
		}
		text := func(v any) string { b, _ := json.Marshal(v); return strings.Trim(string(b), `"`) }
		switch {
		case c.Paused != nil:
			s.push(envelope("plain", "a"))
			require.NoError(s, s.q.Pause(s.Context(), c.Paused[0]))
			assert.Empty(s, run())
		case c.SamePriority != nil:
			for _, n := range c.SamePriority {
				s.push(envelope("plain", text(n)))
			}
			assert.Equal(s, text(c.First), run()[0])
		case c.OneInEach:
			for _, q := range slices.Backward(c.Order) {
				s.push(envelope("plain", text(q)), queue.On(text(q)))
			}
			assert.Equal(s, text(c.Order), "["+quoted(run(queue.Queues(c.Queues)))+"]")
		case c.Queues != "" && c.Push != nil:
			for _, p := range c.Push {
				s.push(envelope("plain", text(p[1])), queue.On(text(p[0])))
			}
			assert.Equal(s, text(c.Order), "["+strings.Join(run(queue.Queues(c.Queues)), ",")+"]")
		case c.Queues != "":
			s.push(envelope("plain", "b"), queue.On("beta"))
			assert.Equal(s, []string{"b"}, run(queue.Queues(c.Queues)), c.Note)
		default:
			for _, p := range c.Push {
				s.push(envelope("plain", text(p[1])), queue.Priority(levels[text(p[0])]))
			}
			assert.Equal(s, text(c.First), run()[0])
		}
	})
}

func quoted(names []string) string {
	b, _ := json.Marshal(names)
	return strings.Trim(string(b), "[]")
}
