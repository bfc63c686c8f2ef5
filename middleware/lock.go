package middleware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/taskd-go/task/job"
)

// UniqueJob lets one job of a key run at a time; the others are skipped, which finishes them, unless OnBusy or
// AsFailure says otherwise. A nil key is the job type. The lock is renewed while the handler runs; that of a
// process that died is free after its Lease.
func UniqueJob(s Store, key KeyFunc, opts ...Option) Middleware {
	return locks("unique", s, key, 1, opts)
}

// WithoutOverlapping is UniqueJob in a name space of its own: for an operation that several job types share, under
// a key that may be made of the payload (see Key), with the time after which the lock of a dead process is free
// as its Lease. A nil key is the job type.
func WithoutOverlapping(s Store, key KeyFunc, opts ...Option) Middleware {
	return locks("overlap", s, key, 1, opts)
}

// Concurrent lets n jobs of a key run at a time, over all processes that share the store, and skips the others
// like WithoutOverlapping. An n below 1 makes the store refuse, and the job is deferred.
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
				_ = k.release(ctx) // the place may have been taken before the answer was lost
				return k.storeFailed("acquire", err)
			}
			if !ok {
				return k.refuse(free, fmt.Sprintf("%q is held", k.key))
			}
			held, unlock := k.keep(ctx)
			defer unlock()
			return k.explain(ctx, held, next(held, e))
		}
	}
}

// A lock is a lease that a layer holds while one job runs.
type lock struct {
	guarded
	owner string
	end   time.Time // when the lease must count as lost, if it is not renewed before
}

// newOwner is a token that no other lease has while it lives.
func newOwner() string { return strconv.FormatUint(rand.Uint64(), 36) }

// leaseEnd is the end of a lease that is asked for now. It leaves the handler a tenth of the lease to stop in.
func (l *layer) leaseEnd() time.Time { return time.Now().Add(l.lease - l.lease/10) }

// explain puts the lost lease in place of the bare context error of a handler that stopped because of it.
func (k *lock) explain(ctx, held context.Context, r job.Result) job.Result {
	lost := context.Cause(held) == job.ErrLeaseLost && context.Cause(ctx) != job.ErrLeaseLost
	if !lost || r.Kind() != job.KindRetry || !stopped(held, r.Err()) {
		return r
	}
	err := fmt.Errorf("%q: %w", k.key, job.ErrLeaseLost)
	return r.WithErr(&job.DeadError{Reason: job.ReasonLeaseLost, Err: err})
}

// keep renews the lease until unlock is called, and ends the returned context when the lease is lost. Most jobs
// are shorter than a third of their lease and never start the goroutine. It does not end with ctx: a handler that
// runs on after that still holds the lock.
func (k *lock) keep(ctx context.Context) (held context.Context, unlock func()) {
	held, lose := context.WithCancelCause(ctx)
	renewing := make(chan context.CancelFunc, 1) // carries what stops the goroutine, and is closed at its end
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
		k.settled("release", k.release(ctx))
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

// release lets go although the job's context may have ended.
func (k *lock) release(ctx context.Context) error {
	return k.store.Release(context.WithoutCancel(ctx), k.key, k.owner)
}
