package job

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type vectorPolicy struct {
	MaxAttempts       int     `json:"maxAttempts"`
	BaseDelayMs       int64   `json:"baseDelayMs"`
	BackoffMultiplier float64 `json:"backoffMultiplier"`
	MaxDelayMs        int64   `json:"maxDelayMs"`
	JitterRatio       float64 `json:"jitterRatio"`
}

func (v vectorPolicy) policy() RetryPolicy {
	return RetryPolicy{
		MaxAttempts: v.MaxAttempts, BaseDelay: time.Duration(v.BaseDelayMs) * time.Millisecond,
		MaxDelay: time.Duration(v.MaxDelayMs) * time.Millisecond, Multiplier: v.BackoffMultiplier, Jitter: v.JitterRatio,
	}
}

func TestPolicyVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Defaults  vectorPolicy
		Schedules []struct {
			Name   string
			Policy vectorPolicy
			Delays []int64 `json:"delays_ms_for_attempt_1_to_n"`
		} `json:"schedules_without_jitter"`
		ShouldRetry []struct {
			Attempt     int
			MaxAttempts int
			Expect      bool
		} `json:"should_retry"`
		Large struct {
			Cases []struct {
				Attempt int
				Expect  int64 `json:"expect_ms"`
			}
		} `json:"large_or_odd_attempts"`
		Jitter struct {
			Cases []struct {
				Attempt     int
				JitterRatio float64
				Raw         int64 `json:"raw_ms"`
				Min         int64 `json:"accept_min_ms"`
				Max         int64 `json:"accept_max_ms"`
			}
		} `json:"jitter_bounds"`
	}](t, "retry_policy.json")

	t.Run("defaults", func(t *testing.T) {
		assert.Equal(t, file.Defaults.policy(), DefaultRetryPolicy())
		assert.Equal(t, DefaultRetryPolicy(), RetryPolicy{}.normal())
	})
	for _, c := range file.Schedules {
		t.Run(c.Name, func(t *testing.T) {
			for i, want := range c.Delays {
				assert.Equal(t, want, c.Policy.policy().BaseDelayFor(i+1).Milliseconds(), "attempt %d", i+1)
				assert.Equal(t, want, c.Policy.policy().Delay(i+1).Milliseconds(), "attempt %d", i+1)
			}
		})
	}
	for _, c := range file.ShouldRetry {
		t.Run(fmt.Sprintf("should_retry %d of %d", c.Attempt, c.MaxAttempts), func(t *testing.T) {
			p := DefaultRetryPolicy()
			p.MaxAttempts = c.MaxAttempts
			assert.Equal(t, c.Expect, p.ShouldRetry(c.Attempt))
		})
	}
	for _, c := range file.Large.Cases {
		t.Run(fmt.Sprintf("attempt %d", c.Attempt), func(t *testing.T) {
			assert.Equal(t, c.Expect, DefaultRetryPolicy().BaseDelayFor(c.Attempt).Milliseconds())
		})
	}
	for _, c := range file.Jitter.Cases {
		t.Run(fmt.Sprintf("jitter %v at attempt %d", c.JitterRatio, c.Attempt), func(t *testing.T) {
			p := DefaultRetryPolicy()
			p.Jitter = c.JitterRatio
			assert.Equal(t, c.Raw, p.BaseDelayFor(c.Attempt).Milliseconds())
			for range 1000 {
				d := p.Delay(c.Attempt)
				require.GreaterOrEqual(t, d, time.Duration(c.Min)*time.Millisecond)
				require.LessOrEqual(t, d, time.Duration(c.Max)*time.Millisecond)
			}
		})
	}
}

func TestPolicySaturates(t *testing.T) {
	t.Parallel()
	huge := RetryPolicy{
		MaxAttempts: Unlimited, BaseDelay: math.MaxInt64, MaxDelay: math.MaxInt64,
		Multiplier: math.Inf(1), Jitter: math.Inf(1),
	}
	odd := RetryPolicy{
		MaxAttempts: 3, BaseDelay: time.Second, MaxDelay: time.Minute, Multiplier: math.NaN(), Jitter: math.NaN(),
	}
	for _, attempt := range []int{math.MinInt, -1, 0, 1, 2, 63, 64, 1 << 20, math.MaxInt} {
		for range 100 {
			d := huge.Delay(attempt)
			require.GreaterOrEqual(t, d, time.Duration(0), "attempt %d", attempt)
		}
		require.Equal(t, time.Duration(math.MaxInt64), huge.BaseDelayFor(attempt))
		require.Equal(t, time.Second, odd.Delay(attempt))
	}
	assert.True(t, huge.ShouldRetry(math.MaxInt32))
	assert.True(t, huge.ShouldRetry(math.MaxInt))
}

func TestAFixedPolicyKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	exponential := RetryPolicy{MaxAttempts: 9, BaseDelay: time.Second, MaxDelay: time.Minute, Multiplier: 3, Jitter: 0.5}
	for _, tt := range []struct {
		name     string
		policy   RetryPolicy
		delay    time.Duration
		attempts int
		want     time.Duration
	}{
		{"an exponential one", exponential, time.Hour, 9, time.Hour},
		{"at once", exponential, 0, 9, 0},
		{"in the past", exponential, -time.Second, 9, 0},
		{"the zero policy", RetryPolicy{}, time.Second, DefaultRetryPolicy().MaxAttempts, time.Second},
		{"the zero policy, at once", RetryPolicy{}, 0, DefaultRetryPolicy().MaxAttempts, 0},
		{"no limit", RetryPolicy{MaxAttempts: Unlimited}, time.Second, Unlimited, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.policy.Fixed(tt.delay)
			assert.Equal(t, tt.attempts, p.MaxAttempts)
			for _, attempt := range []int{0, 1, 2, 100} {
				assert.Equal(t, tt.want, p.Delay(attempt))
			}
		})
	}
}
