package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFiguresOfRounds(t *testing.T) {
	t.Parallel()
	c := Case{"sync", 64, 1, 1}
	r := Results{
		{"ours", c}: {{Rate: 10}, {Rate: 20}, {Rate: 90}},
		{"echo", c}: {{Rate: 10}, {Rate: 10}, {Rate: 100}},
	}
	assert.InDelta(t, 20, r.Median("ours", c, Rate), 0)
	assert.InDelta(t, 1, r.Ratio("ours", "echo", c, Rate), 0, "ratios are taken within a round")
	assert.InDelta(t, 1, r.Spread("ours", c, Rate), 0)
	assert.True(t, math.IsNaN(r.Median("nobody", c, Rate)))
	assert.True(t, math.IsNaN(r.Ratio("ours", "nobody", c, Rate)))
}

func TestAnAimSaysWhetherItIsReached(t *testing.T) {
	t.Parallel()
	figure := func(x float64) func(Results) float64 { return func(Results) float64 { return x } }
	assert.Equal(t, "- reached: speed: 2.0", AtLeast("speed", "%.1f", 2, figure(2)).Line(Results{}))
	assert.Equal(t, "- **not reached**: speed: 1.9", AtLeast("speed", "%.1f", 2, figure(1.9)).Line(Results{}))
	assert.Equal(t, "- **not reached**: time: 2.1", AtMost("time", "%.1f", 2, figure(2.1)).Line(Results{}))
	assert.Equal(t, "- not measured: time", AtMost("time", "%.1f", 2, figure(NotMeasured)).Line(Results{}))
}
