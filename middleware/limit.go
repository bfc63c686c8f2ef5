package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
)

// RateLimited lets max executions of a job type start in any span of window, over all processes that share the
// store. An execution counts when it starts, however it ends. A job over the limit is deferred until the window
// opens, unless AsFailure or OnBusy says otherwise. A max of 0 or less lets nothing through; a window that is not
// positive makes the store refuse, and the job is deferred.
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

// ThrottlesExceptions stops a job type that failed max times, until decay has passed without another failure: each
// failure restarts that time, and after it the count starts again at 1. A retry, a fail and a panic are failures; a
// job that stopped because its context was cancelled (a shutdown, a lost lease) is not. Jobs that run at the same
// time may exceed max by their number. A stopped job is deferred until the window opens, unless AsFailure or
// OnBusy says otherwise; that neither counts nor prolongs the window. A max or decay of 0 or less is the default.
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
	failed := true // what a panic leaves behind
	defer func() {
		if failed {
			_, err := g.store.Add(context.WithoutCancel(ctx), g.key, decay)
			g.settled("add", err)
		}
	}()
	r := next(ctx, g.job)
	failed = r.Failed() && !stopped(ctx, r.Err())
	return r
}
