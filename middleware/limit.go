package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
)

// RateLimited lets at most max jobs of a type start in any span of window, over all processes that
// share the store. A job counts when it starts, however it ends. A job over the limit is deferred
// until the window opens, unless AsFailure or OnBusy is given. A max of 0 or less lets no job run.
// A window of 0 or less is an error of the store, which defers the job.
func RateLimited(s Store, max int, window time.Duration, opts ...Option) Middleware {
	l := newLayer("rate", s, options{refused: deferred}, opts)
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			g := l.guard(e)
			if g.key == "" {
				return g.noKey()
			}
			ok, wait, err := s.Take(ctx, g.key, max, window)
			switch {
			case err != nil:
				return g.storeFailed("take", err)
			case !ok:
				return g.refuse(wait, fmt.Sprintf("Rate limit exceeded for '%s': max %d executions per %s seconds.",
					e.JobType, max, decimal(window.Seconds())))
			default:
				return next(ctx, e)
			}
		}
	}
}

// ThrottlesExceptions stops a job type after max failures until decay has passed without another
// one. Each failure restarts that time; after it, the count starts at 1 again. A retry, a fail and
// a panic are failures; a handler that stopped because its context was cancelled, by a shutdown or
// a lost lease, has not failed. Jobs that run at the same time may exceed max by their number. A
// stopped job is deferred until decay has passed, unless AsFailure or OnBusy is given; that does
// not count as a failure. A max or decay of 0 or less means DefaultThrottleMax or
// DefaultThrottleDecay.
func ThrottlesExceptions(s Store, max int, decay time.Duration, opts ...Option) Middleware {
	if max <= 0 {
		max = DefaultThrottleMax
	}
	if decay <= 0 {
		decay = DefaultThrottleDecay
	}
	l := newLayer("throttle", s, options{refused: deferred}, opts)
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			g := l.guard(e)
			if g.key == "" {
				return g.noKey()
			}
			n, left, err := s.Count(ctx, g.key)
			switch {
			case err != nil:
				return g.storeFailed("count", err)
			case n >= max:
				return g.refuse(left, fmt.Sprintf("Too many exceptions for %s (%d in %s minutes). Throttled.",
					e.JobType, n, decimal(decay.Minutes())))
			default:
				return g.countFailure(ctx, next, decay)
			}
		}
	}
}

func (g *guarded) countFailure(ctx context.Context, next job.HandleFunc, decay time.Duration) job.Result {
	failed := true // unless next returns
	defer func() {
		if failed {
			_, err := g.store.Add(context.WithoutCancel(ctx), g.key, decay)
			g.reportFailure("add", err)
		}
	}()
	r := next(ctx, g.job)
	failed = r.Failed() && !stopped(ctx, r.Err())
	return r
}
