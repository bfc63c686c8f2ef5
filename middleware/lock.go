package middleware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/taskd-go/task/job"
)

// UniqueJob lets one job of a key run at a time and skips the others, which finishes them, unless
// OnBusy or AsFailure is given. A nil key is the job type. The lock is renewed while the handler
// runs; the lock of a process that died is free after its Lease, 5 minutes by default.
func UniqueJob(s Store, key KeyFunc, opts ...Option) Middleware {
	return locks("unique", s, key, 1, opts)
}

// WithoutOverlapping is UniqueJob with keys of its own: for an operation that several job types
// share, or for jobs that have a member of the payload in common, as in
// Key("import_supplier_{supplier_id}"). A nil key is the job type.
func WithoutOverlapping(s Store, key KeyFunc, opts ...Option) Middleware {
	return locks("overlap", s, key, 1, opts)
}

// Concurrent lets at most n jobs of a key run at a time, over all processes that share the store,
// and skips the others like WithoutOverlapping. An n below 1 is an error of the store, which defers
// the job.
func Concurrent(s Store, key KeyFunc, n int, opts ...Option) Middleware {
	return locks("concurrent", s, key, n, opts)
}

func locks(name string, s Store, key KeyFunc, n int, opts []Option) Middleware {
	l := newLayer(name, s, options{refused: skipped, key: key, lease: DefaultLease}, opts)
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			k := &lock{guarded: l.guard(e), owner: newOwner(), end: l.leaseEnd()}
			if k.key == "" {
				return k.noKey()
			}
			ok, free, err := s.Acquire(ctx, k.key, k.owner, n, l.lease)
			if err != nil {
				_ = k.release(ctx) // the store may have leased it before its answer was lost
				return k.storeFailed("acquire", err)
			}
			if !ok {
				return k.refuse(free, fmt.Sprintf("%q is held", k.key))
			}
			held, unlock := k.renewWhileHeld(ctx)
			defer unlock()
			return k.explain(ctx, held, next(held, e))
		}
	}
}

// A lock is a lease that a layer holds while one job runs.
type lock struct {
	guarded
	owner string
	end   time.Time // when the lease counts as lost unless it was renewed
}

// newOwner returns a token that no other live lease has.
func newOwner() string { return strconv.FormatUint(rand.Uint64(), 36) }

// leaseEnd returns when a lease that is requested now counts as lost: a tenth before its end, which
// leaves the handler time to stop.
func (l *layer) leaseEnd() time.Time { return time.Now().Add(l.lease - l.lease/10) }

// explain replaces the context error of a handler that stopped because its lease was lost by one
// that says so.
func (k *lock) explain(ctx, held context.Context, r job.Result) job.Result {
	lost := context.Cause(held) == job.ErrLeaseLost && context.Cause(ctx) != job.ErrLeaseLost
	if !lost || r.Kind() != job.KindRetry || !stopped(held, r.Err()) {
		return r
	}
	err := fmt.Errorf("%q: %w", k.key, job.ErrLeaseLost)
	return r.WithErr(&job.DeadError{Reason: job.ReasonLeaseLost, Err: err})
}

// renewWhileHeld renews the lease until unlock is called, and ends the context that it returns when
// the lease is lost. It goes on after the end of ctx: a handler that ignores that still holds the
// lock. Most jobs are shorter than a third of their lease and never start the goroutine.
func (k *lock) renewWhileHeld(ctx context.Context) (held context.Context, unlock func()) {
	held, lose := context.WithCancelCause(ctx)
	renewing := make(chan context.CancelFunc, 1) // has the function that stops the goroutine; closed at its end
	timer := time.AfterFunc(k.lease/3, func() {
		defer close(renewing)
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		renewing <- stop
		k.renew(ctx, lose)
	})
	return held, func() {
		if !timer.Stop() {
			stop := <-renewing
			stop()
			<-renewing
		}
		k.reportFailure("release", k.release(ctx))
		lose(nil)
	}
}

func (k *lock) renew(ctx context.Context, lose context.CancelCauseFunc) {
	for {
		end := k.leaseEnd()
		held, err := k.renewOnce(ctx)
		wait := k.lease / 3
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && held:
			k.end = end
		case err == nil || !time.Now().Before(k.end):
			k.report(Event{Kind: LeaseLost, Err: err})
			lose(job.ErrLeaseLost)
			return
		default:
			k.report(Event{Kind: StoreFailed, Err: k.storeError("renew", err)})
			wait = min(k.lease/10, time.Until(k.end))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (k *lock) renewOnce(ctx context.Context) (held bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, k.end)
	defer cancel()
	return k.store.Renew(ctx, k.key, k.owner, k.lease)
}

// release works after the end of the job's context too.
func (k *lock) release(ctx context.Context) error {
	return k.store.Release(context.WithoutCancel(ctx), k.key, k.owner)
}
