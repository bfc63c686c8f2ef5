package middleware_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

func TestLockIsReleasedOnEveryWayOut(t *testing.T) {
	t.Parallel()
	ways := map[string]*core{
		"success":                 answers(job.Success()),
		"retry":                   fails(),
		"fail":                    answers(job.Fail(errOwn)),
		"discard":                 answers(job.Discard("")),
		"defer":                   answers(job.Defer(time.Second)),
		"skip":                    answers(job.Skip("")),
		"longer than many leases": takes(time.Hour),
	}
	for name, inner := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := middleware.NewMemory(nil)
				call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, nil))
				assertFree(t, s, "unique:J")
			})
		})
	}
	t.Run("panic", func(t *testing.T) {
		s := middleware.NewMemory(nil)
		layers := []middleware.Middleware{middleware.UniqueJob(s, nil), panics}
		assert.PanicsWithValue(t, errOwn, func() { call(t.Context(), envelope("J"), succeeds(), layers...) })
		assertFree(t, s, "unique:J")
	})
	t.Run("ended context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := middleware.NewMemory(nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			call(ctx, envelope("J"), takes(time.Minute), middleware.UniqueJob(s, nil))
			assertFree(t, s, "unique:J")
		})
	})
}

func TestAbandonedHandlerKeepsItsLockUntilItReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := middleware.NewMemory(nil)
		layer := middleware.WithoutOverlapping(s, middleware.Key("k"), middleware.Lease(3*time.Second))
		r := &job.Runner{Timeout: time.Second, Middleware: []middleware.Middleware{layer}, Logger: discard}
		d := r.Decide(t.Context(), job.Func("J", ignores(time.Minute).Handle), envelope("J"))
		require.NotNil(t, d.Abandoned)
		assert.Equal(t, time.Second, d.Took)

		time.Sleep(30 * time.Second)
		assertHeld(t, s, "overlap:k")
		<-d.Abandoned
		assert.Equal(t, time.Minute, time.Since(d.Started))
		assertFree(t, s, "overlap:k")
	})
}

func TestLockTakenAwayEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &taken{middleware.NewMemory(nil)}
		var log eventLog
		var cause error
		inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Retry(ctx.Err())
		}}
		begin := time.Now()
		unique := middleware.UniqueJob(s, nil, middleware.Lease(9*time.Second), log.option())
		r := call(t.Context(), envelope("J"), inner, unique)
		assert.Equal(t, job.ErrLeaseLost, cause)
		assert.Equal(t, 3*time.Second, time.Since(begin), "the first renewal tells")
		assert.ErrorIs(t, r.Err(), job.ErrLeaseLost, "the result says what happened")
		assert.ErrorContains(t, r.Err(), "unique:J")
		assert.Equal(t, []middleware.EventKind{middleware.LeaseLost}, log.kinds())
		assertHeld(t, s, "unique:J")
	})
}

// A taken store gives each lease to another owner before it is renewed.
type taken struct{ middleware.Store }

func (s *taken) Renew(ctx context.Context, key, owner string, ttl time.Duration) (bool, error) {
	if err := s.Release(ctx, key, owner); err != nil {
		return false, err
	}
	if _, _, err := s.Acquire(ctx, key, "another", 1, time.Hour); err != nil {
		return false, err
	}
	return s.Store.Renew(ctx, key, owner, ttl)
}

func TestLockThatCannotBeRenewedIsLostBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &faulty{Store: middleware.NewMemory(nil), before: down("renew")}
		var log eventLog
		var lostAfter time.Duration
		begin := time.Now()
		inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			lostAfter = time.Since(begin)
			assert.Equal(t, job.ErrLeaseLost, context.Cause(ctx))
			return job.Success()
		}}
		unique := middleware.UniqueJob(s, nil, middleware.Lease(10*time.Second), log.option())
		r := call(t.Context(), envelope("J"), inner, unique)
		assert.Equal(t, job.KindSuccess, r.Kind(), "what the handler finished stands")
		assert.Equal(t, 9*time.Second, lostAfter)
		kinds := log.kinds()
		assert.Greater(t, len(kinds), 3, "it should have tried again")
		assert.Equal(t, middleware.StoreFailed, kinds[0])
		assert.Equal(t, middleware.LeaseLost, kinds[len(kinds)-1])
	})
}

func TestLockOutlivesAStoreThatFailsForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &faulty{Store: middleware.NewMemory(nil)}
		var failures int
		s.before = func(op string) error {
			if op == "renew" && failures < 3 {
				failures++
				return errDown
			}
			return nil
		}
		unique := middleware.UniqueJob(s, nil, middleware.Lease(10*time.Second))
		r := call(t.Context(), envelope("J"), takes(time.Minute), unique)
		assert.Equal(t, job.KindSuccess, r.Kind())
		assert.Equal(t, 3, failures)
	})
}

func TestRenewalThatHangsLosesTheLockInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &hanging{Store: middleware.NewMemory(nil)}
		begin := time.Now()
		inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			assert.Equal(t, 9*time.Second, time.Since(begin))
			return job.Success()
		}}
		call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, nil, middleware.Lease(10*time.Second)))
	})
}

func TestUnlockDoesNotWaitForARenewalThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &hanging{Store: middleware.NewMemory(nil)}
		begin := time.Now()
		call(t.Context(), envelope("J"), takes(5*time.Second), middleware.UniqueJob(s, nil, middleware.Lease(10*time.Second)))
		assert.Equal(t, 5*time.Second, time.Since(begin))
		assertFree(t, s, "unique:J")
	})
}

// A hanging store answers a renewal only when its context ends.
type hanging struct{ middleware.Store }

func (h *hanging) Renew(ctx context.Context, _, _ string, _ time.Duration) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func TestFailedReleaseKeepsTheResult(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: middleware.NewMemory(nil), before: down("release")}
	var log eventLog
	r := call(t.Context(), envelope("J"), succeeds(), middleware.UniqueJob(s, nil, log.option()))
	assert.Equal(t, job.KindSuccess, r.Kind())
	require.Len(t, log.events, 1)
	ev := log.events[0]
	assert.Equal(t, middleware.StoreFailed, ev.Kind)
	assert.Zero(t, ev.Answer, "the job went on")
	assert.ErrorIs(t, ev.Err, errDown)
}

func TestConcurrentLetsNThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := middleware.NewMemory(nil)
		inner := takes(time.Second)
		layer := middleware.Concurrent(s, nil, 3)
		var skips atomic.Int64
		for range 8 {
			go func() {
				if call(t.Context(), envelope("J"), inner, layer).Kind() == job.KindSkip {
					skips.Add(1)
				}
			}()
		}
		synctest.Wait()
		assert.EqualValues(t, 3, inner.runs.Load())
		assert.EqualValues(t, 5, skips.Load())
		time.Sleep(2 * time.Second)
		assertFree(t, s, "concurrent:J")
	})
}

func TestLocksWithoutAnEndOrPlacesDeferTheJob(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	for name, layer := range map[string]middleware.Middleware{
		"ttl 0s must be positive":     middleware.UniqueJob(s, nil, middleware.Lease(0)),
		"ttl -1s must be positive":    middleware.WithoutOverlapping(s, nil, middleware.Lease(-time.Second)),
		"slots 0 must be at least 1":  middleware.Concurrent(s, nil, 0),
		"window -1s must be positive": middleware.RateLimited(s, 3, -time.Second),
	} {
		inner := succeeds()
		r := call(t.Context(), envelope("J"), inner, layer)
		assert.Equal(t, job.KindDefer, r.Kind())
		assert.ErrorContains(t, r.Err(), name)
		assert.Zero(t, inner.runs.Load())
	}
}
