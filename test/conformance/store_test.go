package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/middleware/storetest"
)

// TestStore is the contract of middleware.Store.
func TestStore(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (middleware.Store, func(time.Duration)) {
				db := d.open(t)
				return openQueue(t, db).Locks(), func(by time.Duration) { advance(t, db, by) }
			})
		})
	}
}

// advance moves the store's clock by moving what it stored back.
func advance(t testing.TB, db database, by time.Duration) {
	t.Helper()
	run(t, db, fmt.Sprintf("UPDATE %squeue_holds SET at = at - %d", db.Tables.Prefix, by.Milliseconds()))
	run(t, db, fmt.Sprintf("UPDATE %squeue_locks SET ends = ends - %d", db.Tables.Prefix, by.Milliseconds()))
}

// A counting lock drifts after holders died in every possible way, and workers stay idle.
// Here the places are rows with an owner and an end: once the leases have ended, all are there.
func TestPlacesDoNotDrift_Row41(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			const slots = 20
			db := d.open(t)
			s := openQueue(t, db).Locks()
			random := rand.New(rand.NewPCG(1, 2))
			for i := range scale(5000, 500) {
				owner := fmt.Sprint(random.IntN(100))
				var err error
				switch random.IntN(5) {
				case 0, 1:
					_, _, err = s.Acquire(t.Context(), "k", owner, 1+random.IntN(slots), time.Duration(1+random.IntN(50))*time.Second)
				case 2:
					_, err = s.Renew(t.Context(), "k", owner, time.Minute)
				case 3:
					err = s.Release(t.Context(), "k", owner)
				case 4:
					if i%10 == 0 {
						advance(t, db, time.Duration(random.IntN(20))*time.Second)
					}
				}
				require.NoError(t, err)
			}
			advance(t, db, time.Hour)
			for i := range slots {
				ok, _, err := s.Acquire(t.Context(), "k", fmt.Sprint("new ", i), slots, time.Minute)
				require.NoError(t, err)
				require.True(t, ok, "place %d", i)
			}
			ok, free, err := s.Acquire(t.Context(), "k", "one more", slots, time.Minute)
			require.NoError(t, err)
			assert.False(t, ok)
			assert.Positive(t, free)
		})
	}
}
