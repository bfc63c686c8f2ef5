package client

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ids grow, and some are taken late or never, so that several have the same place.
func TestPendingFindsWhatAMapWould(t *testing.T) {
	t.Parallel()
	for range 50 {
		var p pending
		want := map[uint64]*waiter{}
		var ids []uint64
		id := rand.Uint64()
		for range 2000 {
			if len(ids) < 100 && rand.IntN(2) == 0 {
				id++
				w := &waiter{id: id}
				p.add(w)
				want[id] = w
				ids = append(ids, id)
			} else if len(ids) > 0 {
				// The newer ones more often: what is old stays.
				i := max(rand.IntN(len(ids)), rand.IntN(len(ids)))
				gone := ids[i]
				ids = append(ids[:i], ids[i+1:]...)
				require.Same(t, want[gone], p.take(gone))
				delete(want, gone)
				require.Nil(t, p.take(gone))
			}
			require.Equal(t, len(want), p.n)
		}
		for w := range p.all() {
			require.Same(t, want[w.id], w)
			require.Same(t, w, p.find(w.id))
			delete(want, w.id)
		}
		require.Empty(t, want)
		require.LessOrEqual(t, len(p.places), 512)
	}
}

func TestPendingKeepsNoMemoryOfABurst(t *testing.T) {
	t.Parallel()
	var p pending
	for id := range uint64(keptPlaces) {
		p.add(&waiter{id: id})
	}
	for id := range uint64(keptPlaces) {
		require.NotNil(t, p.take(id))
	}
	require.Empty(t, p.places)
	p.add(&waiter{id: 7})
	require.NotNil(t, p.take(7))
}

func TestPendingThatIsEmptyFindsNothing(t *testing.T) {
	t.Parallel()
	var p pending
	require.Nil(t, p.take(1))
	p.add(&waiter{id: 1})
	require.NotNil(t, p.take(1))
	require.Nil(t, p.take(1))
	require.Nil(t, p.find(1))
}
