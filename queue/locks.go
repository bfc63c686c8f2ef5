package queue

import (
	"context"
	"time"
)

// noLocks is the middleware.Store of a queue whose store has none.
type noLocks struct{ err error }

func (n noLocks) Acquire(context.Context, string, string, int, time.Duration) (bool, time.Duration, error) {
	return false, 0, n.err
}

func (n noLocks) Renew(context.Context, string, string, time.Duration) (bool, error) {
	return false, n.err
}

func (n noLocks) Release(context.Context, string, string) error { return n.err }

func (n noLocks) Take(context.Context, string, int, time.Duration) (bool, time.Duration, error) {
	return false, 0, n.err
}

func (n noLocks) Add(context.Context, string, time.Duration) (int, error) { return 0, n.err }

func (n noLocks) Count(context.Context, string) (int, time.Duration, error) { return 0, 0, n.err }
