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

// noOperation names the parts of queuety_worker.json for which a queue has no operation.
var noOperation = map[string]string{
	"settings": "the defaults of another system; ours stand at the options of NewWorker",
	"pool": "a worker has no processes of its own to add, remove and restart: those are package task's, " +
		"which has tests of it; taskd's tests end a worker by SIGTERM",
}

// played names the parts that the suite tests, and those that have no cases.
var played = []string{"system", "title", "observed_on", "backoff_s", "claim_order", "attempts", "unique_dispatch",
	"sync_dispatch"}

type workerVectors struct {
	Backoff struct {
		Cases []struct {
			Strategy        string
			Attempt, Expect int
		}
		List     struct{ List, Attempts, Expect []int } `json:"list_form"`
		Overflow struct{ Expect int }
	} `json:"backoff_s"`
	ClaimOrder struct {
		Priorities map[string]int
		Cases      []json.RawMessage
	} `json:"claim_order"`
	Attempts struct{ Cases []struct{ Event string } }
	Unique   struct{ Cases []struct{ Name string } } `json:"unique_dispatch"`
	Sync     struct{ Cases []struct{ Name string } } `json:"sync_dispatch"`
}

// runWorkerRules checks the vectors about a worker, except those of noOperation.
func runWorkerRules(s *fixture.Fixture) {
	for part := range vector[map[string]json.RawMessage](s, "queuety_worker") {
		if !slices.Contains(played, part) {
			require.NotEmpty(s, noOperation[part], "the suite has no test for the part %s", part)
		}
	}
	v := vector[workerVectors](s, "queuety_worker")
	runWaits(s, v)
	s.Run("priorities", func(t *testing.T) {
		s := s.Sub(t)
		levels := v.ClaimOrder.Priorities
		require.Equal(s, map[string]int{"low": 0, "normal": 1, "high": 2, "urgent": 3}, levels)
		for name, level := range levels {
			s.Push(fixture.Envelope("plain", name), queue.Priority(level))
		}
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Concurrency(1)))
		assert.Equal(s, []string{"urgent", "high", "normal", "low"}, r.Take())
	})
	for _, raw := range v.ClaimOrder.Cases {
		runClaimOrder(s, raw, v.ClaimOrder.Priorities)
	}
	for _, c := range v.Attempts.Cases {
		s.Run(c.Event, func(t *testing.T) {
			require.NotNil(t, attemptCases[c.Event], "the suite has no test for this case")
			attemptCases[c.Event](s.Sub(t))
		})
	}
	for _, c := range v.Unique.Cases {
		s.Run(c.Name, func(t *testing.T) {
			s := s.Sub(t)
			require.NotNil(s, dispatchCases[c.Name], "the suite has no test for this case")
			push := func(jobType, key string) string {
				return s.Push(fixture.Envelope(jobType, "a"), queue.Unique(key, queue.TakenExisting))
			}
			dispatchCases[c.Name](s, push("plain", "k"), push)
		})
	}
	for _, c := range v.Sync.Cases {
		s.Run("sync "+c.Name, func(t *testing.T) {
			require.NotNil(t, syncCases[c.Name], "the suite has no test for this case")
			reg, err := job.NewRegistry(fixture.ScriptedHandlers...)
			require.NoError(t, err)
			syncCases[c.Name](s.Sub(t), queue.NewSync(reg, queue.Logger(fixture.Quiet)))
		})
	}
}

// runWaits checks each backoff strategy of the vectors, as the Backoff method of a job that always
// fails.
func runWaits(s *fixture.Fixture, v workerVectors) {
	exponential := job.RetryPolicy{MaxAttempts: job.Unlimited, BaseDelay: time.Minute, MaxDelay: time.Hour, Multiplier: 2}
	waits := map[string]func(n int) time.Duration{
		"fixed":       func(int) time.Duration { return time.Minute },
		"linear":      func(n int) time.Duration { return time.Duration(n) * time.Minute },
		"exponential": exponential.BaseDelayFor,
		"list": func(n int) time.Duration {
			return time.Duration(v.Backoff.List.List[min(n, len(v.Backoff.List.List))-1]) * time.Second
		},
	}
	for _, attempt := range []int{63, 64} {
		assert.EqualValues(s, v.Backoff.Overflow.Expect, exponential.BaseDelayFor(attempt).Seconds(), "attempt %d", attempt)
	}
	want := map[string]map[int]int{"list": {}}
	for i, n := range v.Backoff.List.Attempts {
		want["list"][n] = v.Backoff.List.Expect[i]
	}
	for _, c := range v.Backoff.Cases {
		if want[c.Strategy] == nil {
			want[c.Strategy] = map[int]int{}
		}
		want[c.Strategy][c.Attempt] = c.Expect
	}
	for strategy, cases := range want {
		s.Run("backoff "+strategy, func(t *testing.T) {
			s := s.Sub(t)
			require.NotNil(s, waits[strategy], "the suite has no test for this strategy")
			sc := fixture.NewScript(s, &fixture.Script{Times: job.Unlimited, Do: fixture.Fails, Wait: waits[strategy]})
			id := s.PushJob(sc.Job("A"))
			w := s.Worker(s.Q, fixture.ScriptedHandlers)
			seen := 0
			for n := 1; seen < len(cases); n++ {
				require.Equal(s, 1, s.Drain(w))
				due := s.Inspect(id).Job.AvailableAt.UnixMilli() - s.Now
				if expect, ok := cases[n]; ok {
					assert.EqualValues(s, expect*1000, due, "after attempt %d", n)
					seen++
				}
				s.Advance(time.Duration(due) * time.Millisecond)
			}
		})
	}
}

var attemptCases = map[string]func(s *fixture.Fixture){
	"claim": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		id := s.PushJob(sc.Job("A"))
		p := s.Stepped()
		p.Claim()
		info := s.Inspect(id).Job
		assert.Equal(s, []any{"reserved", 1}, []any{info.State, info.Attempts})
		assert.Equal(s, s.Now, info.ReservedAt.UnixMilli())
		assert.Equal(s, s.Now+300_000, info.LeaseUntil.UnixMilli())
		p.End(nil)
	},
	"unclaim": func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		for range 2 {
			_, err := s.Worker(s.Q, fixture.Always(job.Defer(0))).ProcessOne(s.Context())
			require.NoError(s, err)
			info := s.Inspect(id).Job
			assert.Equal(s, []any{"ready", 0, true}, []any{info.State, info.Attempts, info.ReservedAt.IsZero()})
		}
	},
	"release": func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		_, err := s.Worker(s.Q, fixture.Always(job.RetryAfter(errors.New("no"), 0))).ProcessOne(s.Context())
		require.NoError(s, err)
		info := s.Inspect(id).Job
		assert.Equal(s, []any{"ready", 1, true}, []any{info.State, info.Attempts, info.ReservedAt.IsZero()})
	},
	"failure with attempts < max": func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.Tries(2), queue.Backoff(time.Minute))
		s.Drain(s.Worker(s.Q, fixture.Always(job.Retry(errors.New("no")))))
		info := s.Inspect(id).Job
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, s.Now+60_000, info.AvailableAt.UnixMilli())
	},
	"failure with attempts >= max": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, Do: fixture.Fails,
			OnFail: func(context.Context, error) { panic("hook") }})
		s.PushJob(sc.Job("A"))
		s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers))
		s.MustBeEmpty()
		assert.Len(s, s.DeadLetters(), 1)
		assert.Len(s, sc.Failures(), 1)
	},
	"stale > 600 s, attempts >= max": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		p := s.Stepped()
		require.Equal(s, "A", p.Claim())
		p.Leave()
		s.At(601)
		assert.Zero(s, s.Drain(s.Worker(s.Q, fixture.Always(job.Success()))))
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, job.ReasonExhausted, s.DeadLetters()[0].Reason)
		assert.Contains(s, s.DeadLetters()[0].Error, "lease lapsed", "which is this package's word for stale")
	},
	"stale check on a recent job": func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		id := s.PushJob(sc.Job("A"))
		p := s.Stepped()
		p.Claim()
		before := s.Inspect(id).Job
		s.At(299)
		assert.Zero(s, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		assert.Equal(s, before, s.Inspect(id).Job)
		p.End(nil)
	},
	"retry of a buried job with max 1": func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Tries(1))
		w := s.Worker(s.Q, fixture.Always(job.Retry(errors.New("no"))))
		for range 2 {
			assert.Equal(s, 1, s.Drain(w))
			require.Len(s, s.DeadLetters(), 1)
			assert.Equal(s, 1, s.DeadLetters()[0].Attempts, "a fresh budget")
			require.NoError(s, s.Q.Retry(s.Context(), s.DeadLetters()[0].ID))
		}
	},
	"retry of a completed job": func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		s.Drain(s.Worker(s.Q, fixture.Always(job.Success())))
		require.ErrorIs(s, s.Q.Retry(s.Context(), id), queue.ErrNotFound, "it left nothing to retry")
		s.MustBeEmpty()
	},
	"complete/retry/bury by a worker that lost the job": func(s *fixture.Fixture) {
		for _, answer := range []error{nil, errors.New("no"), job.Permanent(errors.New("never"))} {
			sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
			s.PushJob(sc.Job("A"))
			late, owner := s.Stepped(), s.Stepped()
			require.Equal(s, "A", late.Claim())
			s.Advance(301 * time.Second)
			require.Equal(s, "A", owner.Claim())
			owner.End(nil)
			late.End(answer)
			assert.Equal(s, job.ReasonLeaseLost, late.Event(job.EventUnsettled).Reason)
			s.MustBeEmpty()
			assert.Empty(s, s.DeadLetters())
		}
	},
	"middleware skips the job": func(s *fixture.Fixture) {
		skip := func(job.HandleFunc) job.HandleFunc {
			return func(context.Context, job.Envelope) job.Result { return job.Skip("held") }
		}
		sc := fixture.NewScript(s, &fixture.Script{Layers: []job.Middleware{skip}})
		s.PushJob(sc.Job("A"))
		assert.Equal(s, 1, s.Drain(s.Worker(s.Q, fixture.ScriptedHandlers)))
		assert.Empty(s, sc.Ran())
		s.MustBeEmpty()
		assert.Empty(s, s.DeadLetters())
	},
}

var dispatchCases = map[string]func(s *fixture.Fixture, first string, push func(jobType, key string) string){
	"same_handler_and_payload_pending": func(s *fixture.Fixture, first string, push func(jobType, key string) string) {
		assert.Equal(s, first, push("plain", "k"))
	},
	"same_while_processing": func(s *fixture.Fixture, first string, push func(jobType, key string) string) {
		var second string
		s.Drain(s.Worker(s.Q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			second = push("plain", "k")
			return job.Success()
		})))
		assert.Equal(s, first, second)
	},
	"after_completion": func(s *fixture.Fixture, first string, push func(jobType, key string) string) {
		s.Drain(s.Worker(s.Q, fixture.Always(job.Success())))
		assert.NotEqual(s, first, push("plain", "k"))
	},
	"other_payload": func(s *fixture.Fixture, first string, push func(jobType, key string) string) {
		assert.NotEqual(s, first, push("plain", "other"))
	},
	"other_handler": func(s *fixture.Fixture, first string, push func(jobType, key string) string) {
		assert.NotEqual(s, first, push("other", "k"))
	},
	"two_callers_at_once": func(s *fixture.Fixture, _ string, _ func(jobType, key string) string) {
		ids := make(chan string, 2)
		for range 2 {
			q := s.Open()
			go func() {
				id, err := q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), queue.Unique("both", queue.TakenExisting))
				assert.NoError(s, err)
				ids <- id
			}()
		}
		assert.Equal(s, fixture.Receive(s, ids, "an id"), fixture.Receive(s, ids, "an id"))
		assert.EqualValues(s, 2, s.Counts("").Size(), "the first one and that of both")
	},
}

var syncCases = map[string]func(s *fixture.Fixture, q *queue.Queue){
	"runs_at_once": func(s *fixture.Fixture, q *queue.Queue) {
		sc := fixture.NewScript(s, &fixture.Script{})
		_, err := q.Push(s.Context(), sc.Job("A"))
		require.NoError(s, err)
		assert.Equal(s, []string{"A"}, sc.Ran())
		s.MustBeEmpty()
	},
	"error": func(s *fixture.Fixture, q *queue.Queue) {
		sc := fixture.NewScript(s, &fixture.Script{Times: 1, Do: fixture.Fails})
		_, err := q.Push(s.Context(), sc.Job("A"))
		require.EqualError(s, err, "failed")
	},
	"middleware": func(s *fixture.Fixture, q *queue.Queue) { // here it is applied: one rule for both drivers
		passed := false
		layer := func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				passed = true
				return next(ctx, e)
			}
		}
		sc := fixture.NewScript(s, &fixture.Script{Layers: []job.Middleware{layer}})
		_, err := q.Push(s.Context(), sc.Job("A"))
		require.NoError(s, err)
		assert.True(s, passed)
	},
}
