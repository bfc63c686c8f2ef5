package measure

import (
	"math"
	"slices"
)

// NotMeasured stands for a missing figure.
var NotMeasured = math.NaN()

// Measured reports whether x is not NotMeasured.
func Measured(x float64) bool { return !math.IsNaN(x) }

// A Figure returns one number of a sample.
type Figure func(Sample) float64

// The figures of a sample.
func Rate(s Sample) float64   { return s.Rate }
func P50(s Sample) float64    { return s.P50 }
func P95(s Sample) float64    { return s.P95 }
func P99(s Sample) float64    { return s.P99 }
func CPU(s Sample) float64    { return s.CPU }
func Allocs(s Sample) float64 { return s.Allocs }

// A key identifies the samples of one contender and case.
type key struct {
	contender string
	benchCase Case
}

// Results are the samples of each contender and case, by round.
type Results map[key][]Sample

// Add appends s as the sample of the next round.
func (r Results) Add(contender string, c Case, s Sample) {
	k := key{contender, c}
	r[k] = append(r[k], s)
}

// Has reports whether any case of the contender was measured.
func (r Results) Has(contender string) bool {
	for k := range r {
		if k.contender == contender {
			return true
		}
	}
	return false
}

// HasCase reports whether the case of the contender was measured.
func (r Results) HasCase(contender string, c Case) bool { return len(r[key{contender, c}]) > 0 }

// Median returns the median of a figure over the rounds.
func (r Results) Median(contender string, c Case, f Figure) float64 {
	return Quantile(r.figures(contender, c, f), 0.5)
}

// Spread returns half the interquartile range, relative to the median.
func (r Results) Spread(contender string, c Case, f Figure) float64 {
	xs := r.figures(contender, c, f)
	return (Quantile(xs, 0.75) - Quantile(xs, 0.25)) / 2 / Quantile(xs, 0.5)
}

// Ratio returns the median of the ratios within each round, so that changes of the machine's speed
// affect both sides.
func (r Results) Ratio(contender, other string, c Case, f Figure) float64 {
	a, b := r.figures(contender, c, f), r.figures(other, c, f)
	if len(a) != len(b) {
		return NotMeasured
	}
	for i := range a {
		a[i] /= b[i]
	}
	return Quantile(a, 0.5)
}

func (r Results) figures(contender string, c Case, f Figure) []float64 {
	samples := r[key{contender, c}]
	xs := make([]float64, len(samples))
	for i, s := range samples {
		xs[i] = f(s)
	}
	return xs
}

// Quantile returns the quantile q of xs. It interpolates between values.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return NotMeasured
	}
	xs = slices.Sorted(slices.Values(xs))
	at := q * float64(len(xs)-1)
	low := int(at)
	high := min(low+1, len(xs)-1)
	return xs[low] + (xs[high]-xs[low])*(at-float64(low))
}
