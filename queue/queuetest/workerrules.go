package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// noOperation names the parts of queuety_worker.json for which this package has no operation.
var noOperation = map[string]string{
	"settings": "the defaults of another system; ours stand at the options of NewWorker",
	"pool":     "a worker has no processes of its own to add, remove and restart: those are package task's, which has tests of it; taskd's tests end a worker by SIGTERM",
}

// played are the other parts, and what is no case.
var played = []string{"system", "title", "observed_on", "backoff_s", "claim_order", "attempts", "unique_dispatch", "sync_dispatch"}

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

// playWorkerRules is what the vectors say about a worker around the pipeline, but for noOperation.
func playWorkerRules(s *stage) {
	for part := range vector[map[string]json.RawMessage](s, "queuety_worker") {
		if !slices.Contains(played, part) {
			require.NotEmpty(s, noOperation[part], "the suite has no test for the part %s", part)
		}
	}
	v := vector[workerVectors](s, "queuety_worker")
	playWaits(s, v)
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
	for _, c := range v.Attempts.Cases {
		s.Run(c.Event, func(t *testing.T) {
			require.NotNil(t, attemptsTold[c.Event], "the suite has no test for this case")
			attemptsTold[c.Event](s.sub(t))
		})
	}
	for _, c := range v.Unique.Cases {
		s.Run(c.Name, func(t *testing.T) {
			s := s.sub(t)
			require.NotNil(s, uniqueTold[c.Name], "the suite has no test for this case")
			push := func(jobType, key string) string {
				return s.push(envelope(jobType, "a"), queue.Unique(key, queue.TakenExisting))
			}
			uniqueTold[c.Name](s, push("plain", "k"), push)
		})
	}
	for _, c := range v.Sync.Cases {
		s.Run("sync "+c.Name, func(t *testing.T) {
			require.NotNil(t, syncTold[c.Name], "the suite has no test for this case")
			reg, err := job.NewRegistry(scriptedHandlers...)
			require.NoError(t, err)
			syncTold[c.Name](s.sub(t), queue.NewSync(reg, queue.Logger(quiet)))
		})
	}
}

// playWaits is the strategies of waiting, written as the Backoff method of a job that fails and fails.
func playWaits(s *stage, v workerVectors) {
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
			s := s.sub(t)
			require.NotNil(s, waits[strategy], "the suite has no test for this strategy")
			sc := newScript(s, &script{tries: job.Unlimited, handle: fails, backoff: waits[strategy]})
			id := s.pushJob(sc.job("A"))
			w := s.worker(s.q, scriptedHandlers)
			seen := 0
			for n := 1; seen < len(cases); n++ {
				require.Equal(s, 1, s.drain(w))
				due := s.inspect(id).Job.AvailableAt.UnixMilli() - s.now
				if expect, ok := cases[n]; ok {
					assert.EqualValues(s, expect*1000, due, "after attempt %d", n)
					seen++
				}
				s.advance(time.Duration(due) * time.Millisecond)
			}
		})
	}
}

var attemptsTold = map[string]func(s *stage){
	"claim": func(s *stage) {
		sc := newScript(s, &script{handle: held})
		id := s.pushJob(sc.job("A"))
		p := s.puppet()
		p.claim()
		info := s.inspect(id).Job
		assert.Equal(s, []any{"reserved", 1}, []any{info.State, info.Attempts})
		assert.Equal(s, s.now, info.ReservedAt.UnixMilli())
		assert.Equal(s, s.now+300_000, info.LeaseUntil.UnixMilli())
		p.end(nil)
	},
	"unclaim": func(s *stage) {
		id := s.push(envelope("plain", "a"))
		for range 2 {
			_, err := s.worker(s.q, always(job.Defer(0))).ProcessOne(s.Context())
			require.NoError(s, err)
			info := s.inspect(id).Job
			assert.Equal(s, []any{"ready", 0, true}, []any{info.State, info.Attempts, info.ReservedAt.IsZero()})
		}
	},
	"release": func(s *stage) {
		id := s.push(envelope("plain", "a"))
		_, err := s.worker(s.q, always(job.RetryAfter(errors.New("no"), 0))).ProcessOne(s.Context())
		require.NoError(s, err)
		info := s.inspect(id).Job
		assert.Equal(s, []any{"ready", 1, true}, []any{info.State, info.Attempts, info.ReservedAt.IsZero()})
	},
	"failure with attempts < max": func(s *stage) {
		id := s.push(envelope("plain", "a"), queue.Tries(2), queue.Backoff(time.Minute))
		s.drain(s.worker(s.q, always(job.Retry(errors.New("no")))))
		info := s.inspect(id).Job
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, s.now+60_000, info.AvailableAt.UnixMilli())
	},
	"failure with attempts >= max": func(s *stage) {
		sc := newScript(s, &script{tries: 1, handle: fails, onFail: func(context.Context, error) { panic("hook") }})
		s.pushJob(sc.job("A"))
		s.drain(s.worker(s.q, scriptedHandlers))
		s.mustBeEmpty()
		assert.Len(s, s.failed(), 1)
		assert.Len(s, sc.failures(), 1)
	},
	"stale > 600 s, attempts >= max": func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(1))
		s.db.must(s, fmt.Sprintf("UPDATE %s SET reserved_token = 'gone.1', reserved_at = %d, lease_until = %d, attempts = 1", s.table("jobs"), s.now, s.now))
		s.at(601)
		assert.Zero(s, s.drain(s.worker(s.q, always(job.Success()))))
		require.Len(s, s.failed(), 1)
		assert.Equal(s, job.ReasonExhausted, s.failed()[0].Reason)
		assert.Contains(s, s.failed()[0].Error, "lease lapsed", "which is this package's word for stale")
	},
	"stale check on a recent job": func(s *stage) {
		sc := newScript(s, &script{handle: held})
		id := s.pushJob(sc.job("A"))
		p := s.puppet()
		p.claim()
		before := s.inspect(id).Job
		s.at(299)
		assert.Zero(s, s.drain(s.worker(s.q, scriptedHandlers)))
		assert.Equal(s, before, s.inspect(id).Job)
		p.end(nil)
	},
	"retry of a buried job with max 1": func(s *stage) {
		s.push(envelope("plain", "a"), queue.Tries(1))
		w := s.worker(s.q, always(job.Retry(errors.New("no"))))
		for range 2 {
			assert.Equal(s, 1, s.drain(w))
			require.Len(s, s.failed(), 1)
			assert.Equal(s, 1, s.failed()[0].Attempts, "a fresh budget")
			require.NoError(s, s.q.Retry(s.Context(), s.failed()[0].ID))
		}
	},
	"retry of a completed job": func(s *stage) {
		id := s.push(envelope("plain", "a"))
		s.drain(s.worker(s.q, always(job.Success())))
		require.ErrorIs(s, s.q.Retry(s.Context(), id), queue.ErrNotFound, "it left nothing to retry")
		s.mustBeEmpty()
	},
	"complete/retry/bury by a worker that lost the job": func(s *stage) {
		for _, answer := range []error{nil, errors.New("no"), job.Permanent(errors.New("never"))} {
			sc := newScript(s, &script{handle: held})
			s.pushJob(sc.job("A"))
			late, owner := s.puppet(), s.puppet()
			require.Equal(s, "A", late.claim())
			s.advance(301 * time.Second)
			require.Equal(s, "A", owner.claim())
			owner.end(nil)
			late.end(answer)
			assert.Equal(s, job.ReasonLeaseLost, late.event(job.EventUnsettled).Reason)
			s.mustBeEmpty()
			assert.Empty(s, s.failed())
		}
	},
	"middleware skips the job": func(s *stage) {
		skip := func(job.HandleFunc) job.HandleFunc {
			return func(context.Context, job.Envelope) job.Result { return job.Skip("held") }
		}
		sc := newScript(s, &script{layers: []job.Middleware{skip}})
		s.pushJob(sc.job("A"))
		assert.Equal(s, 1, s.drain(s.worker(s.q, scriptedHandlers)))
		assert.Empty(s, sc.ran())
		s.mustBeEmpty()
		assert.Empty(s, s.failed())
	},
}

var uniqueTold = map[string]func(s *stage, first string, push func(jobType, key string) string){
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
	"two_callers_at_once": func(s *stage, _ string, _ func(jobType, key string) string) {
		ids := make(chan string, 2)
		for range 2 {
			q := s.open()
			go func() {
				id, err := q.PushEnvelope(s.Context(), envelope("plain", "a"), queue.Unique("both", queue.TakenExisting))
				assert.NoError(s, err)
				ids <- id
			}()
		}
		assert.Equal(s, receive(s, ids, "an id"), receive(s, ids, "an id"))
		assert.EqualValues(s, 2, s.counts("").Size(), "the first one and that of both")
	},
}

var syncTold = map[string]func(s *stage, q *queue.Queue){
	"runs_at_once": func(s *stage, q *queue.Queue) {
		sc := newScript(s, &script{})
		_, err := q.Push(s.Context(), sc.job("A"))
		require.NoError(s, err)
		assert.Equal(s, []string{"A"}, sc.ran())
		s.mustBeEmpty()
	},
	"error": func(s *stage, q *queue.Queue) {
		sc := newScript(s, &script{tries: 1, handle: fails})
		_, err := q.Push(s.Context(), sc.job("A"))
		require.EqualError(s, err, "failed")
	},
	"middleware": func(s *stage, q *queue.Queue) { // here it is applied: one rule for both drivers
		passed := false
		layer := func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				passed = true
				return next(ctx, e)
			}
		}
		sc := newScript(s, &script{layers: []job.Middleware{layer}})
		_, err := q.Push(s.Context(), sc.job("A"))
		require.NoError(s, err)
		assert.True(s, passed)
	},
}
