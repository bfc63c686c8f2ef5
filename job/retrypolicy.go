package job

import (
	"math"
	"math/rand/v2"
	"time"
)

// Unlimited as MaxAttempts means no limit.
const Unlimited = math.MaxInt32

// A RetryPolicy says how often a job runs and how long it waits between two runs. A value out of
// range counts as the nearest allowed one: MaxAttempts at least 1, delays at least 0, Multiplier at
// least 1, Jitter at least 0. A policy equal to RetryPolicy{} means DefaultRetryPolicy; in any
// other policy a zero field means zero: a MaxDelay of 0 allows no delay.
type RetryPolicy struct {
	MaxAttempts int           // the most runs, the first included; Unlimited: no limit
	BaseDelay   time.Duration // the delay after the first attempt
	MaxDelay    time.Duration // the longest delay
	Multiplier  float64       // how many times longer each delay is than the one before
	Jitter      float64       // the part of a delay by which it varies, up and down: 0.2 is 20 %
}

// DefaultRetryPolicy returns 5 attempts with delays of 1 s that double up to 300 s, and a jitter of
// 0.2.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{MaxAttempts: 5, BaseDelay: time.Second, MaxDelay: 300 * time.Second, Multiplier: 2, Jitter: 0.2}
}

// ShouldRetry reports whether a job may run again after the given attempt.
func (p RetryPolicy) ShouldRetry(attempt int) bool {
	limit := p.normal().MaxAttempts
	return limit == Unlimited || attempt < limit
}

// BaseDelayFor returns the delay after the given attempt without jitter: BaseDelay times Multiplier
// to the power of attempt-1, rounded half away from zero to whole milliseconds, at most MaxDelay.
// An attempt below 1 counts as 1.
func (p RetryPolicy) BaseDelayFor(attempt int) time.Duration {
	p = p.normal()
	if p.BaseDelay == 0 {
		return 0
	}
	ms := math.Round(float64(p.BaseDelay) / float64(time.Millisecond) * math.Pow(p.Multiplier, float64(max(attempt, 1)-1)))
	if ms >= float64(p.MaxDelay)/float64(time.Millisecond) {
		return p.MaxDelay
	}
	return time.Duration(ms) * time.Millisecond
}

// Delay returns BaseDelayFor with jitter, never over MaxDelay. It is evenly spread over the range
// that Jitter and MaxDelay allow, so that jobs that failed together run again apart from each
// other, also at MaxDelay.
func (p RetryPolicy) Delay(attempt int) time.Duration {
	p = p.normal()
	delay := float64(p.BaseDelayFor(attempt))
	if delay == 0 {
		return 0
	}
	low := max(0, delay*(1-p.Jitter))
	high := min(delay*(1+p.Jitter), float64(p.MaxDelay))
	d := low + rand.Float64()*(high-low)
	if d >= float64(p.MaxDelay) {
		return p.MaxDelay
	}
	return time.Duration(d)
}

// Fixed returns p with the delay d after every attempt, without jitter; less than 0 counts as 0. It
// keeps MaxAttempts.
func (p RetryPolicy) Fixed(d time.Duration) RetryPolicy {
	d = max(d, 0)
	return RetryPolicy{MaxAttempts: p.normal().MaxAttempts, BaseDelay: d, MaxDelay: d, Multiplier: 1}
}

func (p RetryPolicy) normal() RetryPolicy {
	if p == (RetryPolicy{}) {
		return DefaultRetryPolicy()
	}
	p.MaxAttempts = min(max(p.MaxAttempts, 1), Unlimited)
	p.BaseDelay, p.MaxDelay = max(p.BaseDelay, 0), max(p.MaxDelay, 0)
	if !(p.Multiplier >= 1) { // NaN too
		p.Multiplier = 1
	}
	if !(p.Jitter >= 0) {
		p.Jitter = 0
	}
	return p
}
