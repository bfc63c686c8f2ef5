package queuetest

import (
	"context"
	"encoding/json"
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
			told[c.Name](s.sub(t), queue.NewSync(reg, queue.Logger(quiet)))
		})
	}
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
