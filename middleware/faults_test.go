package middleware_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// A dead job must not block a new one.
func TestDeadJobDoesNotBlockANewOne_Row31(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	last := envelope("J")
	last.Attempt, last.MaxAttempts = 5, 5
	require.Equal(t, job.Dead.String(), decide(t, last, fails(), middleware.UniqueJob(s, nil)).Outcome.String())
	d := decide(t, envelope("J"), succeeds(), middleware.UniqueJob(s, nil))
	assert.Equal(t, job.Succeeded.String(), d.Outcome.String())
}

// Cancelled or dead: the key is reusable immediately, not after the lease.
func TestKeyIsReusableAtOnce_Row32(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]*core{
		"dead":      answers(job.Fail(errOwn)),
		"discarded": answers(job.Discard("cancelled")),
		"cancelled": takes(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := middleware.NewMemory(nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				call(ctx, envelope("J"), inner, middleware.UniqueJob(s, nil))
				assertFree(t, s, "unique:J")
			})
		})
	}
}

// The lock is set, then something fails, and the lock stays behind.
func TestLockWhoseAnswerWasLostIsFreed_Row33(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: middleware.NewMemory(nil), after: down("acquire")}
	deferredByStore(t, middleware.UniqueJob(s, nil))
	s.after = nil
	assertFree(t, s, "unique:J")
}

// The lock is never freed when the payload cannot be decoded.
func TestLockIsFreedWhenThePayloadCannotBeDecoded_Row35(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	e := envelope("J")
	e.Payload = []byte(`{"supplier_id":"seven"}`)
	type payload struct {
		SupplierID int `json:"supplier_id"`
	}
	h := job.Typed("J", func(context.Context, payload, job.Envelope) job.Result { return job.Success() })
	r := job.With(h, middleware.UniqueJob(s, nil)).Handle(t.Context(), e)
	require.Equal(t, job.KindFail, r.Kind())
	assertFree(t, s, "unique:J")
}

// The lock survives a killed worker, for ever by default. Here the next job runs at most a lease
// later, and a lock without an end cannot be made (TestLocksWithoutAnEndOrPlacesDeferTheJob).
func TestLockOfAKilledHolderIsFreeAfterItsLease_Row36(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{time.Minute, middleware.DefaultLease} {
		synctest.Test(t, func(t *testing.T) {
			s, inner := middleware.NewMemory(nil), succeeds()
			layer := middleware.WithoutOverlapping(s, nil, middleware.Lease(lease), middleware.OnBusy(job.Defer(time.Second)))
			held(t, s, "overlap:J", lease) // by a process that will not release it
			begin := time.Now()
			for call(t.Context(), envelope("J"), inner, layer).Kind() == job.KindDefer {
				time.Sleep(time.Second)
			}
			assert.EqualValues(t, 1, inner.runs.Load())
			assert.LessOrEqual(t, time.Since(begin), lease)
		})
	}
}

// An overlapping job silently vanishes or is silently retried. Here each policy reports what it
// did.
func TestEveryRefusalIsReported_Row37(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		option middleware.Option
		answer job.Kind
		delay  time.Duration
		words  string // in place of the layer's
	}{
		{"skip", middleware.OnBusy(job.Skip("")), job.KindSkip, 0, ""},
		{"defer", middleware.OnBusy(job.Defer(7 * time.Second)), job.KindDefer, 7 * time.Second, ""},
		{"fail an attempt", middleware.AsFailure(), job.KindRetry, 0, ""},
		{"words of one's own", middleware.OnBusy(job.Discard("not twice a day")), job.KindDiscard, 0, "not twice a day"},
	} {
		for _, layer := range []string{"unique", "overlap", "concurrent", "rate", "throttle"} {
			t.Run(layer+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := middleware.NewMemory(nil)
					var log eventLog
					r := call(t.Context(), envelope("J"), succeeds(), busy(t, s, layer, c.option, log.option()))
					assert.Equal(t, c.answer.String(), r.Kind().String())
					delay, _ := r.Delay()
					assert.Equal(t, c.delay, delay)
					require.Error(t, r.Err(), "the result says why")
					assert.Equal(t, c.words != "", c.words == r.Err().Error())

					require.Len(t, log.events, 1)
					ev := log.events[0]
					assert.Error(t, ev.Err)
					ev.Err = nil
					assert.Equal(t, middleware.Event{
						Kind: middleware.Refused, Layer: layer, Key: layer + ":J",
						JobID: "job_1", JobType: "J", Attempt: 1, Answer: c.answer, Wait: time.Minute,
					}, ev)
				})
			})
		}
	}
}

// busy is a layer that lets no J through for a minute.
func busy(t *testing.T, s middleware.Store, layer string, opts ...middleware.Option) middleware.Middleware {
	t.Helper()
	switch layer {
	case "unique":
		held(t, s, "unique:J", time.Minute)
		return middleware.UniqueJob(s, nil, opts...)
	case "overlap":
		held(t, s, "overlap:J", time.Minute)
		return middleware.WithoutOverlapping(s, nil, opts...)
	case "concurrent":
		held(t, s, "concurrent:J", time.Minute)
		return middleware.Concurrent(s, nil, 1, opts...)
	case "rate":
		return middleware.RateLimited(s, 0, time.Minute, opts...)
	default:
		_, err := s.Add(t.Context(), "throttle:J", time.Minute)
		require.NoError(t, err)
		return middleware.ThrottlesExceptions(s, 1, time.Minute, opts...)
	}
}

// A stale execution releases the semaphore twice, and a job with a limit of 1 runs many times.
func TestStaleHoldersNeverRaiseTheLimit_Row38(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	const limit = 2
	var running, most atomic.Int64
	inner := &core{handle: func(context.Context, job.Envelope) job.Result {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer running.Add(-1)
		return job.Success()
	}}
	twice := &releasesTwice{s}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				call(t.Context(), envelope("J"), inner, middleware.Concurrent(twice, nil, limit))
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
}

type releasesTwice struct{ middleware.Store }

func (s *releasesTwice) Release(ctx context.Context, key, owner string) error {
	if err := s.Store.Release(ctx, key, owner); err != nil {
		return err
	}
	return s.Store.Release(ctx, key, owner)
}

// A counting lock drifts after holders died in every possible way, and workers stay idle for ever.
// Here the limit is derived from live leases: once they have ended, all places are there.
func TestPlacesDoNotDrift_Row41(t *testing.T) {
	t.Parallel()
	const slots = 20
	c := newClock()
	s := middleware.NewMemory(c.Now)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 5_000 {
		owner := fmt.Sprint(random.IntN(100))
		var err error
		switch random.IntN(4) {
		case 0, 1:
			_, _, err = s.Acquire(t.Context(), "k", owner, slots, time.Duration(1+random.IntN(50))*time.Second)
		case 2:
			_, err = s.Renew(t.Context(), "k", owner, time.Minute)
		case 3:
			err = s.Release(t.Context(), "k", owner)
		}
		require.NoError(t, err, "step %d", i)
		c.Advance(time.Duration(random.IntN(1000)) * time.Millisecond)
	}
	c.Advance(time.Minute)
	for i := range slots {
		ok, _, err := s.Acquire(t.Context(), "k", fmt.Sprint("new", i), slots, time.Second)
		require.NoError(t, err)
		assert.True(t, ok, "place %d of %d", i+1, slots)
	}
	ok, _, err := s.Acquire(t.Context(), "k", "one more", slots, time.Second)
	require.NoError(t, err)
	assert.False(t, ok)
}

// A global limit of 40 over 4 workers: at least 90 % of the un-limited throughput for jobs of 100
// ms. More workers than places ask all the time, so that the deferrals are part of what is
// measured.
func TestGlobalLimitKeepsTheThroughput_Row43(t *testing.T) {
	t.Parallel()
	const limit, processes, workersEach, took = 40, 4, 20, 100 * time.Millisecond
	const seconds = 2
	synctest.Test(t, func(t *testing.T) {
		s, inner := middleware.NewMemory(nil), takes(took)
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var done atomic.Int64
		var all sync.WaitGroup
		for range processes {
			layer := middleware.Concurrent(s, nil, limit, middleware.OnBusy(job.Defer(5*time.Millisecond)))
			for range workersEach {
				all.Go(func() {
					for ctx.Err() == nil {
						r := call(ctx, envelope("J"), inner, layer)
						delay, _ := r.Delay()
						time.Sleep(delay)
						if r.Kind() == job.KindSuccess {
							done.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		unlimited := limit * seconds * int64(time.Second/took)
		assert.LessOrEqual(t, done.Load(), unlimited)
		assert.GreaterOrEqual(t, done.Load(), unlimited*9/10)
	})
}

// The throttle counter is not reset after its window. Here an error after a quiet window counts 1.
func TestThrottleStartsAgainAfterAQuietWindow_Row76(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := middleware.NewMemory(nil)
		inner, layer := fails(), middleware.ThrottlesExceptions(s, 3, time.Minute)
		for range 3 {
			call(t.Context(), envelope("J"), inner, layer)
		}
		assertRefused(t, call(t.Context(), envelope("J"), inner, layer), job.KindDefer)
		time.Sleep(time.Minute)
		call(t.Context(), envelope("J"), inner, layer)
		assert.Equal(t, 1, count(t, s, "throttle:J"))
		call(t.Context(), envelope("J"), inner, layer)
		assert.EqualValues(t, 5, inner.runs.Load(), "one error after the window must not close it")
	})
}
