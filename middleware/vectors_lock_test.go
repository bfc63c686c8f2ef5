package middleware_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

func TestUniqueJobVectors(t *testing.T) {
	t.Parallel()
	runVectors(t, builtinCases(t, "unique_job"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"free": func(t *testing.T, _ builtinCase) {
			s, inner := middleware.NewMemory(nil), succeeds()
			call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, nil))
			assert.EqualValues(t, 1, inner.runs.Load())
			assertFree(t, s, "unique:J")
		},
		"held": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			held(t, s, "unique:J", time.Hour)
			skippedByLock(t, middleware.UniqueJob(s, nil))
		},
		"custom_key": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			inner := &core{handle: func(context.Context, job.Envelope) job.Result {
				assertHeld(t, s, "unique:sync_inventory")
				assertFree(t, s, "unique:J")
				return job.Success()
			}}
			call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, middleware.Key("sync_inventory")))
			assert.EqualValues(t, 1, inner.runs.Load())
		},
		"released_on_error": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			assert.ErrorIs(t, call(t.Context(), envelope("J"), fails(), middleware.UniqueJob(s, nil)).Err(), errOwn)
			assertFree(t, s, "unique:J")
		},
		"holder_crashed": func(t *testing.T, _ builtinCase) {
			s, inner, layer := middleware.NewMemory(nil), succeeds(), func(s middleware.Store) middleware.Middleware {
				return middleware.UniqueJob(s, nil, middleware.Lease(time.Minute))
			}
			held(t, s, "unique:J", time.Minute)
			time.Sleep(time.Minute)
			call(t.Context(), envelope("J"), inner, layer(s))
			assert.EqualValues(t, 1, inner.runs.Load())
		},
		"store_down": func(t *testing.T, _ builtinCase) {
			s := &faulty{Store: middleware.NewMemory(nil), before: down("acquire")}
			deferredByStore(t, middleware.UniqueJob(s, nil))
		},
		"two_at_once": func(t *testing.T, _ builtinCase) {
			s, inner := middleware.NewMemory(nil), takes(time.Second)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, nil)) })
			}
			all.Wait()
			assert.EqualValues(t, 1, inner.runs.Load())
		},
	}, nil)
}

// skippedByLock checks that a held lock finishes the job as skipped, unrun and not retried.
func skippedByLock(t *testing.T, layer middleware.Middleware) {
	t.Helper()
	inner := succeeds()
	d := decide(t, envelope("J"), inner, layer)
	assert.Equal(t, job.Skipped.String(), d.Outcome.String())
	var refused *middleware.RefusedError
	assert.ErrorAs(t, d.Err, &refused)
	assert.Zero(t, inner.runs.Load())
}

func TestWithoutOverlappingVectors(t *testing.T) {
	t.Parallel()
	imports := middleware.Key("import_products")
	runVectors(t, builtinCases(t, "without_overlapping"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"ttl_default": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			inner := &core{handle: func(context.Context, job.Envelope) job.Result {
				assert.Equal(t, 300*time.Second, assertHeld(t, s, "overlap:import_products"))
				return job.Success()
			}}
			call(t.Context(), envelope("J"), inner, middleware.WithoutOverlapping(s, imports))
			assert.EqualValues(t, 1, inner.runs.Load())
		},
		"held": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			held(t, s, "overlap:import_products", time.Minute)
			skippedByLock(t, middleware.WithoutOverlapping(s, imports))
		},
		"expired_is_cleaned": func(t *testing.T, _ builtinCase) {
			s, inner := middleware.NewMemory(nil), succeeds()
			held(t, s, "overlap:import_products", time.Minute)
			time.Sleep(time.Minute + time.Second)
			call(t.Context(), envelope("J"), inner, middleware.WithoutOverlapping(s, imports))
			assert.EqualValues(t, 1, inner.runs.Load())
		},
		"live_lock": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			held(t, s, "overlap:import_products", 2*time.Minute)
			time.Sleep(time.Minute)
			skippedByLock(t, middleware.WithoutOverlapping(s, imports))
		},
		"released_on_error": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			call(t.Context(), envelope("J"), fails(), middleware.WithoutOverlapping(s, imports))
			assertFree(t, s, "overlap:import_products")
		},
		"owner_guard": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			paused := &faulty{Store: s, before: down("renew")}
			inner := &core{handle: func(context.Context, job.Envelope) job.Result {
				time.Sleep(time.Minute)
				held(t, s, "overlap:import_products", time.Hour)
				return job.Success()
			}}
			layer := middleware.WithoutOverlapping(paused, imports, middleware.Lease(time.Minute))
			call(t.Context(), envelope("J"), inner, layer)
			assertHeld(t, s, "overlap:import_products")
		},
		"overrun": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			layer := middleware.WithoutOverlapping(s, imports, middleware.Lease(5*time.Second))
			go call(t.Context(), envelope("J"), takes(20*time.Second), layer)
			synctest.Wait()
			for range 19 {
				time.Sleep(time.Second)
				assertHeld(t, s, "overlap:import_products")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			assertFree(t, s, "overlap:import_products")
		},
		"shared_namespace": func(t *testing.T, _ builtinCase) {
			s, inner, same := middleware.NewMemory(nil), succeeds(), middleware.Key("same")
			call(t.Context(), envelope("J"), inner, middleware.UniqueJob(s, same), middleware.WithoutOverlapping(s, same))
			assert.EqualValues(t, 1, inner.runs.Load())
		},
	}, map[string]string{
		"other_time_zone": "the memory store has one clock; a store on a database shows this",
	})
}

func TestCombinedExampleVectors(t *testing.T) {
	t.Parallel()
	const lock, budget = "overlap:import_supplier_7", "rate:import_products"
	importOf7 := envelope("import_products")
	importOf7.Payload = []byte(`{"supplier_id":7}`)
	layers := func(s middleware.Store) []middleware.Middleware {
		return []middleware.Middleware{
			middleware.Timeout(300 * time.Second),
			middleware.WithoutOverlapping(s, middleware.Key("import_supplier_{supplier_id}"), middleware.Lease(600*time.Second)),
			middleware.RateLimited(s, 5, 60*time.Second, middleware.AsFailure()),
		}
	}
	spend := func(t *testing.T, s middleware.Store, n int) {
		t.Helper()
		for range n {
			ok, _, err := s.Take(t.Context(), budget, 5, 60*time.Second)
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	runVectors(t, builtinCases(t, "example_combo"), builtinCase.name, map[string]func(*testing.T, builtinCase){
		"another import of the same supplier is running": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			held(t, s, lock, time.Minute)
			assertRefused(t, call(t.Context(), importOf7, succeeds(), layers(s)...), job.KindSkip)
			spend(t, s, 5)
		},
		"lock free, budget used": func(t *testing.T, _ builtinCase) {
			s := middleware.NewMemory(nil)
			spend(t, s, 5)
			refused := assertRefused(t, call(t.Context(), importOf7, succeeds(), layers(s)...), job.KindRetry)
			assert.EqualError(t, refused, "Rate limit exceeded for 'import_products': max 5 executions per 60 seconds.")
			assertFree(t, s, lock)
		},
		"lock free, budget free, job takes 400 s": func(t *testing.T, _ builtinCase) {
			s, begin := middleware.NewMemory(nil), time.Now()
			r := call(t.Context(), importOf7, takes(400*time.Second), layers(s)...)
			assert.Equal(t, 300*time.Second, time.Since(begin))
			assert.EqualError(t, r.Err(), "Job exceeded maximum execution time of 300 seconds.")
			assertFree(t, s, lock)
		},
	}, nil)
}
