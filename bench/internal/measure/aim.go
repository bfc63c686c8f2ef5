package measure

import (
	"fmt"
	"math"
)

// An Aim is a limit for one figure.
type Aim struct {
	words  string
	format string // of the figure
	figure func(Results) float64
	least  float64
	most   float64
}

// AtLeast returns the aim that f is at least least.
func AtLeast(words, format string, least float64, f func(Results) float64) Aim {
	return Aim{words, format, f, least, math.Inf(1)}
}

// AtMost returns the aim that f is at most most.
func AtMost(words, format string, most float64, f func(Results) float64) Aim {
	return Aim{words, format, f, math.Inf(-1), most}
}

// Line returns a's line for the report: whether a was reached, and the figure.
func (a Aim) Line(r Results) string {
	x := a.figure(r)
	switch {
	case !Measured(x):
		return fmt.Sprintf("- not measured: %s", a.words)
	case x >= a.least && x <= a.most:
		return fmt.Sprintf("- reached: %s: "+a.format, a.words, x)
	default:
		return fmt.Sprintf("- **not reached**: %s: "+a.format, a.words, x)
	}
}
