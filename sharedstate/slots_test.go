package sharedstate

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAdmitStopsAtTheLimit(t *testing.T) {
	table := newTestTable(t, 1, 2)
	r := serving(t, table, 0, 1)
	assert.True(t, r.Admit())
	assert.True(t, r.Admit())
	assert.False(t, r.Admit())
	r.Release(Succeeded)
	assert.True(t, r.Admit())

	s := table.Status()[0]
	assert.Equal(t, 2, s.Running)
	assert.Equal(t, uint64(3), s.Accepted)
	assert.Equal(t, uint64(1), s.Success)
	assert.Equal(t, uint64(1), s.Busy)
}

func TestAcceptanceAndSlotsAreIndependent(t *testing.T) {
	table := newTestTable(t, 1, 2)
	r := serving(t, table, 0, 1)
	require.True(t, r.Admit())
	r.SetAccepting(false)
	assert.False(t, r.Accepting())
	assert.Equal(t, 1, r.Running())
	r.Release(Failed)
	assert.Equal(t, 0, r.Running())
	r.Release(Failed)
	assert.Equal(t, 0, r.Running(), "there was no slot to give back")
	assert.Equal(t, uint64(1), table.Status()[0].Fail)
}

// Any order of timeout, error, success, close changes running by exactly +1 -1; assert never < 0.
func TestRunningGoesUpAndDownByOne_Row3(t *testing.T) {
	const limit = 5
	table := newTestTable(t, 1, limit)
	r := serving(t, table, 0, 1)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	held, accepted, busy := 0, uint64(0), uint64(0)
	var success, fail, expired uint64
	for step := range 20_000 {
		switch random.IntN(5) {
		case 0, 1:
			if got, want := r.Admit(), held < limit; got != want {
				t.Fatalf("seed %d step %d: Admit %t with %d held", seed, step, got, held)
			} else if got {
				held++
				accepted++
			} else {
				busy++
			}
		case 2:
			r.Expired()
			accepted++
			fail++
			expired++
		case 3:
			r.SetAccepting(random.IntN(2) == 0)
		case 4:
			outcome := Outcome(random.IntN(3))
			r.Release(outcome)
			if held == 0 {
				break
			}
			held--
			switch outcome {
			case Succeeded:
				success++
			case ExpiredInSlot:
				expired++
				fail++
			default:
				fail++
			}
		}
		if r.Running() != held {
			t.Fatalf("seed %d step %d: running %d, want %d", seed, step, r.Running(), held)
		}
	}
	s := table.Status()[0]
	assert.Equal(
		t,
		[]uint64{accepted, success, fail, expired, busy},
		[]uint64{s.Accepted, s.Success, s.Fail, s.Expired, s.Busy},
		"seed %d",
		seed,
	)
	assert.Equal(t, s.Accepted, s.Success+s.Fail+s.Lost+uint64(s.Running))
}

func TestSlotsUnderContention(t *testing.T) {
	const limit, goroutines, rounds = 3, 8, 3_000
	table := newTestTable(t, 1, limit)
	r := serving(t, table, 0, 1)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for range rounds {
				if r.Admit() {
					if running := r.Running(); running < 1 || running > limit {
						t.Errorf("running %d", running)
					}
					r.Release(Outcome(g % 3))
				}
			}
		})
	}
	all.Wait()
	s := table.Status()[0]
	assert.Zero(t, s.Running)
	assert.Equal(t, uint64(goroutines*rounds), s.Accepted+s.Busy)
	assert.Equal(t, s.Accepted, s.Success+s.Fail)
}
