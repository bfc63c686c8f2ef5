package middleware

import (
	"context"
	"time"
)

// A Store has the locks and counts of layers, for all workers that share it. Memory serves one
// process; a store on a database serves several. Package storetest tests an implementation against
// this contract.
//
// Each method is atomic and safe for concurrent use, and reads the time from the store's own clock,
// not from the caller's. Leases, takes and counts are separate: one key may be in use in each. A
// lease with a ttl of a second no longer counts when exactly a second has passed.
//
// A method returns an error if ctx has ended, if the store cannot be reached, for an empty key or
// owner, for slots below 1, and for a ttl or window of 0 or less. Except for wrong arguments, the
// effect may have happened all the same.
//
// A method returns soon after ctx has ended. If it waits for another program it has a time limit of
// its own as well, because a layer releases its lock under a context that does not end.
type Store interface {
	// Acquire leases one of slots places of key to owner for ttl. An owner that has one already
	// keeps it, with the new ttl, so that a call whose answer was lost can be repeated. If other
	// owners have slots live leases or more, ok is false, and free is how long until enough of them
	// end for one to be free, if none is renewed or released; then free is positive. Each call
	// counts the live leases anew, and slots may differ from call to call.
	Acquire(ctx context.Context, key, owner string, slots int, ttl time.Duration) (ok bool, free time.Duration, err error)

	// Renew extends owner's lease of key until ttl from now. If owner has no live lease, held is
	// false and nothing changes: a lease that has ended cannot be renewed, even if its place is
	// free.
	Renew(ctx context.Context, key, owner string, ttl time.Duration) (held bool, err error)

	// Release ends owner's lease of key. Without one it does nothing and returns nil.
	Release(ctx context.Context, key, owner string) error

	// Take counts one start under key, if there were fewer than max in the window before now. The
	// window slides: no span of its length ever has more than max. If there were max, ok is false,
	// Take counts nothing, and wait is how long until the next start is possible, at most window.
	// With a max of 0 or less ok is always false and wait is window. If calls differ in max or
	// window, each uses its own; the store may forget starts beyond the newest max.
	Take(ctx context.Context, key string, max int, window time.Duration) (ok bool, wait time.Duration, err error)

	// Add counts one failure under key, extends the window until window from now, and returns the
	// count. If the window had ended, the count starts again at 1.
	Add(ctx context.Context, key string, window time.Duration) (n int, err error)

	// Count returns what Add last returned and how long its window still lasts, or 0 and 0 if it
	// has ended.
	Count(ctx context.Context, key string) (n int, left time.Duration, err error)
}
