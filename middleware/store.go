package middleware

import (
	"context"
	"time"
)

// A Store is what the layers of all workers share: leases for those that hold, windows for those that count.
// Memory serves one process; a store on a database serves many programs. storetest is the contract as a test.
//
// Every method is atomic, safe for concurrent use, and measures time on the store's own clock, never on its
// caller's. Leases, takes and counts are three name spaces: one key may be used in each. What has an end ends
// at it, not after: a lease with a ttl of a second no longer counts when that second has passed.
//
// An error means that nothing is known: the effect may have happened. It is returned when ctx has ended, when
// the store cannot be reached, and for an empty key or owner, slots below 1, and a ttl or window that is not
// positive, so that a lease without an end cannot be made.
//
// A Store returns soon after ctx has ended. Where it waits for somebody else it sets a limit of its own as well:
// a layer that lets go does so under a context that does not end.
type Store interface {
	// Acquire leases one of slots places under key to owner for ttl. It says ok when owner has the place.
	// An owner that already has one keeps that one, with the new ttl, so that a call whose answer was lost
	// can be repeated. When slots or more live leases of others are there it is not ok, and free says how long
	// until enough of them end that one could be had, if none is renewed or released; it is positive then.
	// Places are counted from live leases at each call, and slots may differ from call to call.
	Acquire(ctx context.Context, key, owner string, slots int, ttl time.Duration) (ok bool, free time.Duration, err error)

	// Renew lets owner's lease under key end ttl from now. held is false, and nothing changes, when owner has
	// no live lease there: one that has ended is not revived, even if nobody took its place.
	Renew(ctx context.Context, key, owner string, ttl time.Duration) (held bool, err error)

	// Release ends owner's lease under key. Without one it does nothing, and that is no error.
	Release(ctx context.Context, key, owner string) error

	// Take counts one execution under key if fewer than max were counted in the window before now: a sliding
	// window, so that no span as long as the window ever holds more than max. Otherwise it is not ok, counts
	// nothing, and wait says how long until the next Take could be, at most window. A max of 0 or less never
	// lets anything through and waits for a whole window. When calls differ in max or window, each looks back
	// by its own; an earlier, larger max may have been forgotten.
	Take(ctx context.Context, key string, max int, window time.Duration) (ok bool, wait time.Duration, err error)

	// Add counts one failure under key, lets the window end window from now, and returns the count in it.
	// After a window that ended without an Add the count starts again: n is 1.
	Add(ctx context.Context, key string, window time.Duration) (n int, err error)

	// Count returns what Add last returned and how long its window still lasts, or 0 and 0 when it has ended.
	Count(ctx context.Context, key string) (n int, left time.Duration, err error)
}
