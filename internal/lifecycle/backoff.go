package lifecycle

import (
	"math"
	"time"
)

const (
	// FirstDelay is the shortest wait before the restart after a second failure in a row.
	FirstDelay = 100 * time.Millisecond
	// MaxDelay is the longest wait before a restart.
	MaxDelay = 30 * time.Second
	halfLife = 5 * time.Second // of service; in it the failure count halves
	// DegradedAt is the failure count from which an index is degraded.
	DegradedAt = 5
	recoverAt  = DegradedAt / 2.0
	maxCount   = 12 // reaches MaxDelay; a larger count would only slow the recovery
)

// failures is the failure count of one index. It decays while the index serves, and not while the
// index waits for its restart.
type failures struct {
	count float64
	since time.Time // since when the index serves; zero: it does not
}

func (f *failures) at(now time.Time) float64 {
	if f.since.IsZero() {
		return f.count
	}
	return f.count * math.Exp2(-float64(now.Sub(f.since))/float64(halfLife))
}

// add counts one failure and returns how long to wait before the restart: 0 after the first, then
// FirstDelay, and twice as long each time. random in [0,1) spreads it by a quarter to each side.
func (f *failures) add(now time.Time, random float64) time.Duration {
	f.count, f.since = min(f.at(now)+1, maxCount), time.Time{}
	if f.count < 1.5 {
		return 0
	}
	d := float64(FirstDelay) * math.Exp2(f.count-2) * (0.75 + random/2)
	return min(max(time.Duration(d), FirstDelay), MaxDelay)
}

// serve starts the decay and returns when the count will be low enough for the index not to be
// degraded.
func (f *failures) serve(now time.Time) (healthy time.Time) {
	f.count, f.since = f.at(now), now
	if f.count <= recoverAt {
		return now
	}
	return now.Add(time.Duration(float64(halfLife)*math.Log2(f.count/recoverAt)) + 1)
}
