// Package queuetest tests what package queue promises, over any store. The tests of a store call
// [Run]. The group "capabilities" runs over every store: it checks that the store refuses what it
// cannot do. The other groups need a store with all of backend.Capabilities that is a
// backend.Admin and a backend.Control, and are skipped over others.
package queuetest

import (
	"testing"
	"time"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/queue/backend"
)

// A Harness is a store under test.
type Harness struct {
	// Open returns the store once more, as another process would open it. All that it returns in
	// one test work on the same jobs. It closes what it opened when the test ends.
	Open func(t testing.TB, how Opening) backend.Backend

	// SetClock moves the clock of all open stores but those of OwnClock. Nil: tests that need it
	// are skipped.
	SetClock func(t testing.TB, now time.Time)

	// Clear removes all jobs, dead letters and orders.
	Clear func(t testing.TB)

	// Insert stores a message that is due, as a program in another language does, without package
	// queue. Nil: tests that need it are skipped.
	Insert func(t testing.TB, queue string, payload []byte)
}

// An Opening says how a Harness opens its store.
type Opening struct {
	OwnClock bool // on the store's own clock, whatever SetClock says
	Wakes    bool // as a backend.Waker, if the store can be one
}

// Run runs all tests as subtests of t, one after another, and leaves the store empty.
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

// lacks names something that most tests need and b does not have; "" if it has all.
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
