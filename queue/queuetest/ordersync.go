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

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// runSync checks the sync driver, which needs no store.
func runSync(s *fixture.Fixture) {
	v := vector[struct{ Cases []struct{ Name string } }](s, "sync_driver")
	cases := map[string]func(s *fixture.Fixture, q *queue.Queue){
		"runs_before_push_returns": func(s *fixture.Fixture, q *queue.Queue) {
			sc := fixture.NewScript(s, &fixture.Script{})
			_, err := q.Push(s.Context(), sc.Job("A"))
			require.NoError(s, err)
			assert.Equal(s, []string{"A"}, sc.Ran())
			c, err := q.Counts(s.Context(), "")
			require.NoError(s, err)
			assert.Zero(s, c.Size())
			s.MustBeEmpty()
		},
		"delay": func(s *fixture.Fixture, q *queue.Queue) {
			sc := fixture.NewScript(s, &fixture.Script{})
			_, err := q.Push(s.Context(), sc.Job("A"), queue.Delay(time.Hour))
			require.NoError(s, err)
			assert.Equal(s, []string{"A"}, sc.Ran())
		},
		"queue_name": func(s *fixture.Fixture, q *queue.Queue) {
			sc := fixture.NewScript(s, &fixture.Script{})
			_, err := q.PushMany(s.Context(), []queue.Job{sc.Job("A"), sc.Job("B")}, queue.On("other"))
			require.NoError(s, err)
			assert.Equal(s, []string{"A", "B"}, sc.Ran())
		},
		"failure": func(s *fixture.Fixture, q *queue.Queue) {
			sc := fixture.NewScript(s, &fixture.Script{Times: 3, Do: fixture.Fails,
				Wait: func(int) time.Duration { return time.Hour }})
			_, err := q.Push(s.Context(), sc.Job("A"))
			var dead *job.DeadError
			require.ErrorAs(s, err, &dead)
			assert.Equal(s, "failed", dead.Error())
			assert.Len(s, sc.Ran(), 3)
			assert.Len(s, sc.Failures(), 1)
		},
		"nested_push": func(s *fixture.Fixture, q *queue.Queue) {
			var sc *fixture.Script
			sc = fixture.NewScript(s, &fixture.Script{Times: 1, Do: func(ctx context.Context, name string) error {
				_, err := q.Push(ctx, sc.Job(name+"A"))
				return err
			}})
			_, err := q.Push(s.Context(), sc.Job(""))
			require.ErrorContains(s, err, "16 deep")
			assert.Len(s, sc.Ran(), 16)
		},
	}
	for _, c := range v.Cases {
		s.Run(c.Name, func(t *testing.T) {
			require.NotNil(t, cases[c.Name], "the suite has no test for this case")
			reg, err := job.NewRegistry(fixture.ScriptedHandlers...)
			require.NoError(t, err)
			cases[c.Name](s.Sub(t), queue.NewSync(reg, queue.Logger(fixture.Quiet)))
		})
	}
}

func runClaimOrder(s *fixture.Fixture, raw json.RawMessage, levels map[string]int) {
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
		s := s.Sub(t)
		r := fixture.NewRecord()
		run := func(opts ...queue.WorkerOption) []string {
			s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}, append(opts, queue.Concurrency(1))...))
			return r.Take()
		}
		text := func(v any) string { b, _ := json.Marshal(v); return strings.Trim(string(b), `"`) }
		switch {
		case c.Paused != nil:
			s.Push(fixture.Envelope("plain", "a"))
			require.NoError(s, s.Q.Pause(s.Context(), c.Paused[0]))
			assert.Empty(s, run())
		case c.SamePriority != nil:
			for _, n := range c.SamePriority {
				s.Push(fixture.Envelope("plain", text(n)))
			}
			assert.Equal(s, text(c.First), run()[0])
		case c.OneInEach:
			for _, q := range slices.Backward(c.Order) {
				s.Push(fixture.Envelope("plain", text(q)), queue.On(text(q)))
			}
			assert.Equal(s, text(c.Order), "["+quoted(run(queue.Queues(c.Queues)))+"]")
		case c.Queues != "" && c.Push != nil:
			for _, p := range c.Push {
				s.Push(fixture.Envelope("plain", text(p[1])), queue.On(text(p[0])))
			}
			assert.Equal(s, text(c.Order), "["+strings.Join(run(queue.Queues(c.Queues)), ",")+"]")
		case c.Queues != "":
			s.Push(fixture.Envelope("plain", "b"), queue.On("beta"))
			assert.Equal(s, []string{"b"}, run(queue.Queues(c.Queues)), c.Note)
		default:
			for _, p := range c.Push {
				s.Push(fixture.Envelope("plain", text(p[1])), queue.Priority(levels[text(p[0])]))
			}
			assert.Equal(s, text(c.First), run()[0])
		}
	})
}

func quoted(names []string) string {
	b, _ := json.Marshal(names)
	return strings.Trim(string(b), "[]")
}
