package main

import (
	"math"
	"slices"
)

// notMeasured stands for a figure that there is none of.
var notMeasured = math.NaN()

func measured(x float64) bool { return !math.IsNaN(x) }

// A figure picks one number of a sample.
type figure func(sample) float64

func rate(s sample) float64   { return s.rate }
func p50(s sample) float64    { return s.p50 }
func p95(s sample) float64    { return s.p95 }
func p99(s sample) float64    { return s.p99 }
func cpu(s sample) float64    { return s.cpu }
func allocs(s sample) float64 { return s.allocs }

// median of the rounds' figures.
func (r results) median(contender string, c benchCase, f figure) float64 {
	return quantile(r.figures(contender, c, f), 0.5)
}

// spread is half the distance of the quartiles, as a part of the median.
func (r results) spread(contender string, c benchCase, f figure) float64 {
	xs := r.figures(contender, c, f)
	return (quantile(xs, 0.75) - quantile(xs, 0.25)) / 2 / quantile(xs, 0.5)
}

// ratio is the median of the ratios within each round, so that what the machine
// did in the meantime counts for both alike.
func (r results) ratio(contender, other string, c benchCase, f figure) float64 {
	a, b := r.figures(contender, c, f), r.figures(other, c, f)
	if len(a) != len(b) {
		return notMeasured
	}
	for i := range a {
		a[i] /= b[i]
	}
	return quantile(a, 0.5)
}

func (r results) figures(contender string, c benchCase, f figure) []float64 {
	samples := r.samples[key{contender, c}]
	xs := make([]float64, len(samples))
	for i, s := range samples {
		xs[i] = f(s)
	}
	return xs
}

// quantile of xs, between two values where it falls between them.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return notMeasured
	}
	xs = slices.Sorted(slices.Values(xs))
	at := q * float64(len(xs)-1)
	low := int(at)
	high := min(low+1, len(xs)-1)
	return xs[low] + (xs[high]-xs[low])*(at-float64(low))
}
