package middleware_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

type builtinCase struct {
	Name, Call, State string
	Max               int
	DecayMinutes      int `json:"decay_min"`
	Window            int
	Runs              json.RawMessage
}

type builtinRun struct {
	T          float64
	Job        string
	Expect     string
	CountAfter *int     `json:"count_after"`
	WindowEnds *float64 `json:"window_ends"`
}

func (c builtinCase) name() string { return c.Name + c.Call + c.State }

func builtinCases(t *testing.T, section string) []builtinCase {
	t.Helper()
	var file map[string]json.RawMessage
	loadVectors(t, "middleware_builtin.json", &file)
	var s struct{ Cases []builtinCase }
	require.NoError(t, json.Unmarshal(file[section], &s))
	return s.Cases
}

// play makes the runs of a case at their times through layer, which counts under key.
func play(t *testing.T, c builtinCase, s middleware.Store, key string, layer middleware.Middleware) {
	t.Helper()
	var runs []builtinRun
	require.NoError(t, json.Unmarshal(c.Runs, &runs))
	begin := time.Now()
	for i, run := range runs {
		time.Sleep(time.Until(begin.Add(seconds(run.T))))
		inner := succeeds()
		if run.Job == "fails" {
			inner = fails()
		}
		r := call(t.Context(), envelope("J"), inner, layer)
		switch run.Expect {
		case "own error":
			assert.ErrorIs(t, r.Err(), errOwn, "run %d", i)
		case "runs":
			assert.Equal(t, job.KindSuccess, r.Kind(), "run %d", i)
		case "throttled, core not called", "rate limit error", "rate limit error, core not called":
			assertRefused(t, r, job.KindRetry)
			assert.Zero(t, inner.runs.Load(), "run %d", i)
		default:
			t.Fatalf("run %d expects %q", i, run.Expect)
		}
		n, left, err := s.Count(t.Context(), key)
		require.NoError(t, err)
		if run.CountAfter != nil {
			assert.Equal(t, *run.CountAfter, n, "count after run %d", i)
		}
		if run.WindowEnds != nil {
			assert.Equal(t, begin.Add(seconds(*run.WindowEnds)), time.Now().Add(left), "end of the window after run %d", i)
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// playThrottle plays a case on a count that has begun.
func playThrottle(begun int, quiet time.Duration) func(*testing.T, builtinCase) {
	return func(t *testing.T, c builtinCase) {
		s := middleware.NewMemory(nil)
		failTimes(t, s, begun)
		time.Sleep(quiet)
		decay := time.Duration(c.DecayMinutes) * time.Minute
		play(t, c, s, "throttle:J", middleware.ThrottlesExceptions(s, c.Max, decay, middleware.AsFailure()))
	}
}

func failTimes(t *testing.T, s middleware.Store, n int) {
	t.Helper()
	for range n {
		_, err := s.Add(t.Context(), "throttle:J", 10*time.Minute)
		require.NoError(t, err)
	}
}

func count(t *testing.T, s middleware.Store, key string) int {
	t.Helper()
	n, _, err := s.Count(t.Context(), key)
	require.NoError(t, err)
	return n
}

func TestThrottlesExceptionsVectors(t *testing.T) {
	t.Parallel()
	runVectors(t, builtinCases(t, "throttles_exceptions"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"counts_and_blocks":   playThrottle(0, 0),
		"after_the_window":    playThrottle(3, 10*time.Minute),
		"success_keeps_count": playThrottle(2, 0),
		"per_class": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			failTimes(t, s, 3)
			layer := middleware.ThrottlesExceptions(s, 3, 0)
			assertRefused(t, call(t.Context(), envelope("J"), succeeds(), layer), job.KindDefer)
			assert.Equal(t, job.KindSuccess, call(t.Context(), envelope("K"), succeeds(), layer).Kind())
		},
		"default_ten": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			inner, layer := fails(), middleware.ThrottlesExceptions(s, 0, 0, middleware.AsFailure())
			for range 10 {
				assert.ErrorIs(t, call(t.Context(), envelope("J"), inner, layer).Err(), errOwn)
			}
			r := call(t.Context(), envelope("J"), inner, layer)
			assert.EqualError(t, assertRefused(t, r, job.KindRetry), "Too many exceptions for J (10 in 10 minutes). Throttled.")
			assert.EqualValues(t, 10, inner.runs.Load())
		},
		"store_down": func(t *testing.T, _ builtinCase) {
			s := &faulty{Store: middleware.NewMemory(nil), before: down("count")}
			deferredByStore(t, middleware.ThrottlesExceptions(s, 3, 0))
		},
		"refusal_is_an_attempt": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			failTimes(t, s, 1)
			e := envelope("J")
			e.MaxAttempts = 1
			d := decide(t, e, succeeds(), middleware.ThrottlesExceptions(s, 1, 0, middleware.AsFailure()))
			assert.Equal(t, job.Dead.String(), d.Outcome.String())
			assert.ErrorContains(t, d.Err, "Throttled")
		},
		"outer_to_rate_limit": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			throttle := middleware.ThrottlesExceptions(s, 2, 0)
			rate := middleware.RateLimited(s, 0, time.Minute, middleware.AsFailure())
			call(t.Context(), envelope("J"), succeeds(), throttle, rate)
			call(t.Context(), envelope("J"), succeeds(), throttle, rate)
			assert.Equal(t, 2, count(t, s, "throttle:J"))
		},
		"inner_to_rate_limit": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			throttle := middleware.ThrottlesExceptions(s, 2, 0)
			rate := middleware.RateLimited(s, 0, time.Minute, middleware.AsFailure())
			call(t.Context(), envelope("J"), succeeds(), rate, throttle)
			assert.Zero(t, count(t, s, "throttle:J"))
		},
	}, nil)
}

// deferredByStore checks what a layer does while its store is down: the job is deferred with the
// error, unrun.
func deferredByStore(t *testing.T, layer middleware.Middleware) {
	t.Helper()
	inner := succeeds()
	d := decide(t, envelope("J"), inner, layer)
	assert.Equal(t, job.Deferred.String(), d.Outcome.String())
	assert.ErrorIs(t, d.Err, errDown)
	assert.Positive(t, d.Delay)
	assert.Equal(t, 1, d.Envelope.Attempt)
	assert.Zero(t, inner.runs.Load())
}

func TestRateLimitedVectors(t *testing.T) {
	t.Parallel()
	plays := func(t *testing.T, c builtinCase) {
		s := middleware.NewMemory(nil)
		play(t, c, s, "rate:J", middleware.RateLimited(s, c.Max, seconds(float64(c.Window)), middleware.AsFailure()))
	}
	runVectors(t, builtinCases(t, "rate_limited"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"allows_up_to_max": plays,
		"window_passes":    plays,
		// An execution counts when it starts, however it ends.
		"failures_do_not_count": func(t *testing.T, _ builtinCase) {
			layer := middleware.RateLimited(middleware.NewMemory(nil), 1, time.Minute, middleware.AsFailure())
			assert.ErrorIs(t, call(t.Context(), envelope("J"), fails(), layer).Err(), errOwn)
			r := call(t.Context(), envelope("J"), fails(), layer)
			assert.EqualError(t, assertRefused(t, r, job.KindRetry),
				"Rate limit exceeded for 'J': max 1 executions per 60 seconds.")
		},
		"blocked_inside_counts": func(t *testing.T, _ builtinCase) {
			layer := middleware.RateLimited(middleware.NewMemory(nil), 1, time.Minute)
			call(t.Context(), envelope("J"), succeeds(), layer, traced(t, "block:b", func(string) {}))
			assertRefused(t, call(t.Context(), envelope("J"), succeeds(), layer), job.KindDefer)
		},
		"max_zero": func(t *testing.T, _ builtinCase) {
			layer := middleware.RateLimited(middleware.NewMemory(nil), 0, time.Minute)
			for range 3 {
				refused := assertRefused(t, call(t.Context(), envelope("J"), succeeds(), layer), job.KindDefer)
				assert.Equal(t, time.Minute, refused.Wait)
				time.Sleep(time.Minute)
			}
		},
		"error_is_an_ordinary_failure": func(t *testing.T, _ builtinCase) {
			e := envelope("J")
			e.MaxAttempts = 3
			rate := middleware.RateLimited(middleware.NewMemory(nil), 0, time.Minute, middleware.AsFailure())
			d := decide(t, e, succeeds(), rate)
			assert.Equal(t, job.Requeued.String(), d.Outcome.String())
			assert.Equal(t, 2, d.Envelope.Attempt)
			assert.Equal(t, time.Minute, d.Delay)
		},
		"error_on_last_attempt": func(t *testing.T, _ builtinCase) {
			e := envelope("J")
			e.MaxAttempts = 1
			rate := middleware.RateLimited(middleware.NewMemory(nil), 0, time.Minute, middleware.AsFailure())
			d := decide(t, e, succeeds(), rate)
			assert.Equal(t, job.Dead.String(), d.Outcome.String())
		},
		"pre_check_puts_back": func(t *testing.T, _ builtinCase) {
			d := decide(t, envelope("J"), succeeds(), middleware.RateLimited(middleware.NewMemory(nil), 0, time.Minute))
			assert.Equal(t, job.Deferred.String(), d.Outcome.String())
			assert.Equal(t, 1, d.Envelope.Attempt)
			assert.Equal(t, time.Minute, d.Delay)
		},
		"parallel_workers": func(t *testing.T, _ builtinCase) {
			s, inner := middleware.NewMemory(nil), succeeds()
			var workers sync.WaitGroup
			for range 2 {
				layer := middleware.RateLimited(s, 4, time.Minute)
				workers.Go(func() {
					for range 10 {
						call(t.Context(), envelope("J"), inner, layer)
					}
				})
			}
			workers.Wait()
			assert.EqualValues(t, 4, inner.runs.Load())
		},
		"head_of_line": func(t *testing.T, _ builtinCase) {
			layer := middleware.RateLimited(middleware.NewMemory(nil), 0, time.Minute)
			assert.Equal(t, job.Deferred.String(), decide(t, envelope("limited"), succeeds(), layer).Outcome.String())
			for range 2 {
				assert.Equal(t, job.Succeeded.String(), decide(t, envelope("free"), succeeds()).Outcome.String())
			}
		},
	}, nil)
}

func TestLimiterVectors(t *testing.T) {
	t.Parallel()
	take := func(t *testing.T, s middleware.Store, key string, max int, window time.Duration) bool {
		t.Helper()
		ok, _, err := s.Take(t.Context(), key, max, window)
		require.NoError(t, err)
		return ok
	}
	const unregistered = "a limit is given with each take; nothing is registered"
	runVectors(t, builtinCases(t, "limiter_api"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"time_until_available after the window": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			assert.True(t, take(t, s, "k", 1, time.Minute))
			time.Sleep(time.Minute)
			ok, wait, err := s.Take(t.Context(), "k", 1, time.Minute)
			require.NoError(t, err)
			assert.True(t, ok)
			assert.Zero(t, wait)
		},
		"register(3), record x3": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			for range 3 {
				assert.True(t, take(t, s, "k", 3, time.Minute))
			}
			assert.False(t, take(t, s, "k", 3, time.Minute))
		},
		"register(1, window 1), record, wait 2 s": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			assert.True(t, take(t, s, "k", 1, time.Second))
			assert.False(t, take(t, s, "k", 1, time.Second))
			time.Sleep(2 * time.Second)
			assert.True(t, take(t, s, "k", 1, time.Second))
		},
		"two keys, a max 1, b max 2, record a": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			assert.True(t, take(t, s, "a", 1, time.Minute))
			assert.False(t, take(t, s, "a", 1, time.Minute))
			assert.True(t, take(t, s, "b", 2, time.Minute))
		},
		"register with max -1": func(t *testing.T, _ builtinCase) {
			assert.False(t, take(t, middleware.NewMemory(nil), "k", -1, time.Minute))
		},
		// A limit without a window says nothing: it is refused and the job deferred, not let
		// through.
		"register with window 0": func(t *testing.T, _ builtinCase) {
			_, _, err := middleware.NewMemory(nil).Take(t.Context(), "k", 1, 0)
			assert.ErrorContains(t, err, "window 0s must be positive")
		},
	}, map[string]string{
		"is_limited(unregistered)":                       unregistered,
		"record(unregistered)":                           unregistered,
		"time_until_available(unregistered)":             unregistered,
		"time_until_available just after register(1,60)": unregistered,
	})
}

func TestTimeoutVectors(t *testing.T) {
	t.Parallel()
	overran := func(t *testing.T, r job.Result, limit time.Duration, text string) {
		t.Helper()
		assert.Equal(t, job.KindRetry, r.Kind())
		assert.EqualError(t, r.Err(), text)
		assert.ErrorIs(t, r.Err(), context.DeadlineExceeded)
		var over *middleware.TimeoutError
		require.ErrorAs(t, r.Err(), &over)
		assert.Equal(t, limit, over.Limit)
	}
	timed := func(f func()) time.Duration {
		begin := time.Now()
		f()
		return time.Since(begin)
	}
	runVectors(t, builtinCases(t, "timeout"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"fast_job": func(t *testing.T, _ builtinCase) {
			r := call(t.Context(), envelope("J"), succeeds(), middleware.Timeout(10*time.Second))
			assert.Equal(t, job.KindSuccess, r.Kind())
		},
		"passes_job": func(t *testing.T, _ builtinCase) {
			var got job.Envelope
			inner := &core{handle: func(_ context.Context, e job.Envelope) job.Result { got = e; return job.Success() }}
			call(t.Context(), envelope("J"), inner, middleware.Timeout(10*time.Second))
			assert.Equal(t, envelope("J"), got)
		},
		"cleared_on_error": func(t *testing.T, _ builtinCase) {
			var inside context.Context
			inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
				inside = ctx
				return job.Retry(errOwn)
			}}
			assert.ErrorIs(t, call(t.Context(), envelope("J"), inner, middleware.Timeout(time.Second)).Err(), errOwn)
			assert.ErrorIs(t, inside.Err(), context.Canceled, "the timer should be gone with the handler")
		},
		"overrun": func(t *testing.T, _ builtinCase) {
			var r job.Result
			took := timed(func() {
				r = call(t.Context(), envelope("J"), takes(2200*time.Millisecond), middleware.Timeout(time.Second))
			})
			overran(t, r, time.Second, "Job exceeded maximum execution time of 1 seconds.")
			assert.Equal(t, time.Second, took)
		},
		"outer_deadline_survives": func(t *testing.T, _ builtinCase) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
			defer cancel()
			after := takes(time.Hour)
			outer := func(next job.HandleFunc) job.HandleFunc {
				return func(ctx context.Context, e job.Envelope) job.Result {
					next(ctx, e)
					return after.Handle(ctx, e)
				}
			}
			var r job.Result
			took := timed(func() { r = call(ctx, envelope("J"), succeeds(), outer, middleware.Timeout(5*time.Second)) })
			assert.Equal(t, 300*time.Second, took)
			assert.ErrorIs(t, r.Err(), context.DeadlineExceeded)
		},
		"zero": func(t *testing.T, _ builtinCase) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			took := timed(func() { call(ctx, envelope("J"), takes(time.Hour), middleware.Timeout(0)) })
			assert.Equal(t, time.Minute, took, "no limit of its own, and the outer one stays")
		},
		"nested": func(t *testing.T, _ builtinCase) {
			var r job.Result
			took := timed(func() {
				r = call(t.Context(), envelope("J"), takes(3*time.Second),
					middleware.Timeout(time.Second), middleware.Timeout(10*time.Second))
			})
			overran(t, r, time.Second, "Job exceeded maximum execution time of 1 seconds.")
			assert.Equal(t, time.Second, took)
		},
	}, nil)
}
