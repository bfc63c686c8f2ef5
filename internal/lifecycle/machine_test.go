package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var raceEnabled bool

func TestRandomSchedulesKeepTheInvariants(t *testing.T) {
	schedules := 100_000
	if testing.Short() || raceEnabled {
		schedules = 5_000
	}
	for seed := range uint64(schedules) {
		if w := schedule(seed, false); w.err != nil {
			w = schedule(seed, true)
			require.NoError(t, w.err, "seed %d\n%s", seed, strings.Join(w.trace, "\n"))
		}
	}
}

func schedule(seed uint64, traced bool) *world {
	w := newWorld(seed)
	w.traced = traced
	w.step(StartWanted{})
	for range 20 + w.rand.IntN(60) {
		w.act()
	}
	w.end()
	return w
}
