package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

func TestRefusalByALimitWaitsForTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := middleware.NewMemory(nil)
		rate := middleware.RateLimited(s, 1, time.Minute)
		throttle := middleware.ThrottlesExceptions(s, 1, 0)
		call(t.Context(), envelope("J"), fails(), rate, throttle)
		time.Sleep(20 * time.Second)

		for layer, wait := range map[*middleware.Middleware]time.Duration{
			&rate: 40 * time.Second, &throttle: 10*time.Minute - 20*time.Second,
		} {
			d := decide(t, envelope("J"), succeeds(), *layer)
			assert.Equal(t, job.Deferred.String(), d.Outcome.String())
			assert.Equal(t, wait, d.Delay)
			assert.Equal(t, 1, d.Envelope.Attempt)
		}
	})
}

func TestThrottleCountsEveryFailure(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), -1)
	defer cancelLate()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		answer job.Result
		want   int
	}{
		{"retry", t.Context(), job.Retry(errOwn), 1},
		{"fail", t.Context(), job.Fail(errOwn), 1},
		{"no result", t.Context(), job.Result{}, 1},
		{"success", t.Context(), job.Success(), 0},
		{"discard", t.Context(), job.Discard("old"), 0},
		{"defer", t.Context(), job.Defer(time.Second), 0},
		{"skip", t.Context(), job.Skip("held"), 0},
		{"a time limit", late, job.Retry(context.DeadlineExceeded), 1},
		{"a shutdown", ended, job.Retry(errors.Join(errOwn, context.Canceled)), 0},
		{"its own failure in a shutdown", ended, job.Retry(errOwn), 1},
		{"somebody else's cancellation", t.Context(), job.Retry(context.Canceled), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := middleware.NewMemory(nil)
			// The store is asked under a context that is alive; only the handler sees the one that
			// ended.
			swap := func(next job.HandleFunc) job.HandleFunc {
				return func(ctx context.Context, e job.Envelope) job.Result { return next(c.ctx, e) }
			}
			throttle := middleware.ThrottlesExceptions(alive{s}, 3, 0)
			call(t.Context(), envelope("J"), answers(c.answer), swap, throttle)
			assert.Equal(t, c.want, count(t, s, "throttle:J"))
		})
	}
	t.Run("panic", func(t *testing.T) {
		s := middleware.NewMemory(nil)
		layers := []middleware.Middleware{middleware.ThrottlesExceptions(s, 3, 0), panics}
		assert.PanicsWithValue(t, errOwn, func() { call(t.Context(), envelope("J"), succeeds(), layers...) })
		assert.Equal(t, 1, count(t, s, "throttle:J"))
	})
}

// alive is a store that was asked just before the context ended.
type alive struct{ middleware.Store }

func (a alive) Count(ctx context.Context, key string) (int, time.Duration, error) {
	return a.Store.Count(context.WithoutCancel(ctx), key)
}

func TestFailureThatCannotBeCountedIsStillTheResult(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: middleware.NewMemory(nil), before: down("add")}
	var log eventLog
	r := call(t.Context(), envelope("J"), fails(), middleware.ThrottlesExceptions(s, 3, 0, log.option()))
	assert.Equal(t, errOwn, r.Err())
	assert.Equal(t, []middleware.EventKind{middleware.StoreFailed}, log.kinds())
}

func TestLimitsThatTypesShare(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	shared := middleware.KeyedBy(middleware.Key("mail-api"))
	layer := middleware.RateLimited(s, 1, time.Minute, shared)
	assert.Equal(t, job.KindSuccess, call(t.Context(), envelope("welcome"), succeeds(), layer).Kind())
	r := call(t.Context(), envelope("reminder"), succeeds(), layer)
	assert.Equal(t, "rate:mail-api", assertRefused(t, r, job.KindDefer).Key)
}

func TestTimeoutLeavesAnswersThatAreNoRetry(t *testing.T) {
	t.Parallel()
	for _, want := range []job.Result{
		job.Success(), job.Fail(errOwn), job.Discard("old"), job.Defer(time.Second), job.Skip("held"),
	} {
		t.Run(want.Kind().String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
					<-ctx.Done()
					return want
				}}
				assert.Equal(t, want, call(t.Context(), envelope("J"), inner, middleware.Timeout(time.Second)))
			})
		})
	}
}

func TestTimeoutKeepsTheHandlersErrorAndDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &core{handle: func(ctx context.Context, _ job.Envelope) job.Result {
			<-ctx.Done()
			return job.RetryAfter(errOwn, 7*time.Second)
		}}
		d := decide(t, envelope("J"), inner, middleware.Timeout(1500*time.Millisecond))
		assert.Equal(t, job.Requeued.String(), d.Outcome.String())
		assert.Equal(t, job.ReasonTimeout, d.Reason)
		assert.EqualError(t, d.Err, "Job exceeded maximum execution time of 1.5 seconds.")
		assert.ErrorIs(t, d.Err, errOwn)
		assert.Equal(t, 7*time.Second, d.Delay)
	})
}

func TestTimeoutDoesNotClaimAnotherLayersDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := call(ctx, envelope("J"), takes(time.Hour), middleware.Timeout(time.Minute))
		assert.Equal(t, context.DeadlineExceeded, r.Err())
	})
}
