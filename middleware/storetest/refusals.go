package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/middleware"
)

var refusals = []contract{
	{"a value against the rules is an error and has no effect", func(b *harness) {
		for _, c := range badCalls {
			b.Run(c.name, func(t *testing.T) {
				assert.Error(t, c.call(t.Context(), b.store))
			})
		}
		b.mustAcquire("k", "b", 1, unit)
		b.mustTake("k", 1, unit)
		assert.Equal(b, 1, b.add("k", unit))
	}},
	{"a context that has ended is an error and has no effect", func(b *harness) {
		for _, c := range goodCalls {
			b.Run(c.name, func(t *testing.T) {
				require.ErrorIs(t, c.call(ended(), b.store), context.Canceled)
			})
		}
		b.mustAcquire("k", "b", 1, unit)
		b.mustTake("k", 1, unit)
		assert.Equal(b, 1, b.add("k", unit))
	}},
	{"a release whose context has ended keeps the lease", func(b *harness) {
		b.mustAcquire("k", "a", 1, unit)
		assert.Error(b, b.store.Release(ended(), "k", "a"))
		b.mustBeHeld("k", 1, unit)
	}},
}

type call struct {
	name string
	call func(ctx context.Context, s middleware.Store) error
}

var goodCalls = []call{
	{"acquire", acquire("k", "a", 1, unit)},
	{"renew", renew("k", "a", unit)},
	{"release", release("k", "a")},
	{"take", take("k", 1, unit)},
	{"add", add("k", unit)},
	{"count", count("k")},
}

var badCalls = []call{
	{"acquire without an end", acquire("k", "a", 1, 0)},
	{"acquire with an end in the past", acquire("k", "a", 1, -unit)},
	{"acquire one of 0 places", acquire("k", "a", 0, unit)},
	{"acquire without a key", acquire("", "a", 1, unit)},
	{"acquire without an owner", acquire("k", "", 1, unit)},
	{"renew without an end", renew("k", "a", 0)},
	{"renew without a key", renew("", "a", unit)},
	{"renew without an owner", renew("k", "", unit)},
	{"release without a key", release("", "a")},
	{"release without an owner", release("k", "")},
	{"take without a window", take("k", 1, 0)},
	{"take without a key", take("", 1, unit)},
	{"add without a window", add("k", 0)},
	{"add without a key", add("", unit)},
	{"count without a key", count("")},
}

func acquire(key, owner string, slots int, ttl time.Duration) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error {
		_, _, err := s.Acquire(ctx, key, owner, slots, ttl)
		return err
	}
}

func renew(key, owner string, ttl time.Duration) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error {
		_, err := s.Renew(ctx, key, owner, ttl)
		return err
	}
}

func release(key, owner string) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error { return s.Release(ctx, key, owner) }
}

func take(key string, max int, window time.Duration) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error {
		_, _, err := s.Take(ctx, key, max, window)
		return err
	}
}

func add(key string, window time.Duration) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error {
		_, err := s.Add(ctx, key, window)
		return err
	}
}

func count(key string) func(context.Context, middleware.Store) error {
	return func(ctx context.Context, s middleware.Store) error {
		_, _, err := s.Count(ctx, key)
		return err
	}
}
