package props

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/taskd-go/task/job"
)

var (
	anyDuration = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(time.Hour)),
			rapid.Int64(),
			rapid.SampledFrom([]int64{0, 1, int64(time.Millisecond), math.MaxInt64, math.MinInt64}),
		).Draw(t, "ns"))
	})
	anyFactor = rapid.OneOf(
		rapid.Float64Range(0, 4),
		rapid.SampledFrom([]float64{0, 1, 1e308, -1, math.Inf(1), math.Inf(-1), math.NaN()}),
	)
	anyAttempt = rapid.OneOf(rapid.IntRange(-2, 100), rapid.Int())
	anyPolicy  = rapid.Custom(func(t *rapid.T) job.RetryPolicy {
		return job.RetryPolicy{
			MaxAttempts: rapid.OneOf(rapid.IntRange(-1, 50), rapid.Just(job.Unlimited), rapid.Int()).Draw(t, "MaxAttempts"),
			BaseDelay:   anyDuration.Draw(t, "BaseDelay"),
			MaxDelay:    anyDuration.Draw(t, "MaxDelay"),
			Multiplier:  anyFactor.Draw(t, "Multiplier"),
			Jitter:      anyFactor.Draw(t, "Jitter"),
		}
	})
)

// longest is the largest delay that p allows.
func longest(p job.RetryPolicy) time.Duration {
	if p == (job.RetryPolicy{}) {
		p = job.DefaultRetryPolicy()
	}
	return max(0, p.MaxDelay)
}

func TestDelaysStayInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, attempt := anyPolicy.Draw(t, "policy"), anyAttempt.Draw(t, "attempt")
		for name, d := range map[string]time.Duration{"base": p.BaseDelayFor(attempt), "with jitter": p.Delay(attempt)} {
			assert.GreaterOrEqual(t, d, time.Duration(0), name)
			assert.LessOrEqual(t, d, longest(p), name)
		}
	})
}

func TestBaseDelayNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy.Draw(t, "policy")
		early, late := anyAttempt.Draw(t, "one attempt"), anyAttempt.Draw(t, "another")
		if early > late {
			early, late = late, early
		}
		assert.LessOrEqual(t, p.BaseDelayFor(early), p.BaseDelayFor(late))
	})
}

func TestAttemptsBelowOneAreTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, attempt := anyPolicy.Draw(t, "policy"), rapid.IntMax(0).Draw(t, "attempt")
		assert.Equal(t, p.BaseDelayFor(1), p.BaseDelayFor(attempt))
	})
}

func TestJitterStaysWithinItsPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy.Draw(t, "policy")
		p.MaxAttempts = 3 // not the zero policy, which means the default
		p.Jitter = rapid.Float64Range(0, 2).Draw(t, "jitter")
		attempt := anyAttempt.Draw(t, "attempt")
		base, d := float64(p.BaseDelayFor(attempt)), float64(p.Delay(attempt))
		slack := 1 + base*1e-9 // a nanosecond, and what float64 rounds
		assert.GreaterOrEqual(t, d, base*(1-p.Jitter)-slack)
		assert.LessOrEqual(t, d, base*(1+p.Jitter)+slack)
	})
}

func TestGrowingDelaysEndAtTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := job.RetryPolicy{
			MaxAttempts: job.Unlimited,
			BaseDelay:   time.Duration(rapid.Int64Range(int64(time.Millisecond), math.MaxInt64).Draw(t, "BaseDelay")),
			MaxDelay:    time.Duration(rapid.Int64Min(0).Draw(t, "MaxDelay")),
			Multiplier:  rapid.Float64Range(1.01, 10).Draw(t, "Multiplier"),
		}
		attempt := rapid.IntMin(10_000).Draw(t, "attempt")
		assert.Equal(t, p.MaxDelay, p.BaseDelayFor(attempt))
		assert.Equal(t, p.MaxDelay, p.Delay(attempt))
	})
}

func TestRetriesEndAtMaxAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, attempt := anyPolicy.Draw(t, "policy"), anyAttempt.Draw(t, "attempt")
		p.BaseDelay = time.Second // not the zero policy, which means the default
		limit := max(1, p.MaxAttempts)
		require.Equal(t, limit >= job.Unlimited || attempt < limit, p.ShouldRetry(attempt))
	})
}
