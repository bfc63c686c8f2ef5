// Package queuetest tests a store: it checks that package queue keeps its promises over it. The
// tests of a store call [Run]. The group "capabilities" runs for every store, and checks that what
// the store lacks fails with the right error. The other groups are skipped unless the store has
// Delay, Priority and Unique of backend.Capabilities and is a backend.Admin and a backend.Control.
// Package middleware/storetest tests the store of a backend.Locker.
package queuetest

import (
	"testing"
	"time"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/queue/backend"
)

// A Harness gives Run access to the store under test. Its functions fail t if they cannot do their
// work.
type Harness struct {
	// Open opens the store, as one process does. A test calls it several times, and all stores that
	// it returns work on the same jobs. It registers a cleanup of t that closes the store, if the
	// store needs that.
	Open func(t testing.TB, how Opening) backend.Backend

	// SetClock sets the clock of all stores, open or opened later, except those with OwnClock. The
	// clock stands still between two calls. If SetClock is nil, tests that need it are skipped.
	SetClock func(t testing.TB, now time.Time)

	// Clear removes all jobs, dead letters and orders. Each test begins with it.
	Clear func(t testing.TB)

	// Insert stores a message that is due at once, as a program in another language does, without
	// package queue. If it is nil, tests that need it are skipped.
	Insert func(t testing.TB, queue string, payload []byte)
}

// An Opening says how to open the store.
type Opening struct {
	OwnClock bool // use the store's own clock, not that of SetClock
	Wakes    bool // return a backend.Waker, if the store can be one
}

// Run runs all tests as subtests of t, one after another, and clears the store at the end.
func Run(t *testing.T, h Harness) {
	own := fixture.Harness{SetClock: h.SetClock, Clear: h.Clear, Insert: h.Insert}
	own.Open = func(t testing.TB, how fixture.Opening) backend.Backend { return h.Open(t, Opening(how)) }
	for _, group := range []struct {
		name  string
		tests []behaviour
	}{
		{"push", pushes}, {"unique", uniques}, {"order", orders}, {"work", works}, {"lease", leases}, {"end", ends},
		{"dead letters", deaths}, {"control", controls}, {"vectors", vectors}, {"many", many}, {"capabilities", capabilities},
	} {
		t.Run(group.name, func(t *testing.T) {
			if what := lacks(h.Open(t, Opening{})); what != "" && group.name != "capabilities" {
				t.Skip("this store has no " + what)
			}
			for _, b := range group.tests {
				t.Run(b.name, func(t *testing.T) { b.test(fixture.New(t, own)) })
			}
		})
	}
	h.Clear(t)
}

type behaviour struct {
	name string
	test func(s *fixture.Fixture)
}

// lacks names something that most tests need and b lacks, or returns "" if b has all.
func lacks(b backend.Backend) string {
	_, isAdmin := b.(backend.Admin)
	_, isControl := b.(backend.Control)
	switch can := b.Can(); {
	case !isAdmin:
		return "admin interface"
	case !isControl:
		return "orders for workers"
	case !can.Delay, !can.Priority, !can.Unique:
		return "delay, priority or unique keys"
	}
	return ""
}
