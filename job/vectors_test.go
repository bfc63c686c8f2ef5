package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// differs names the cases where this package does something else than the file expects, and why.
// All of them are side effects of the original's language, which the file leaves free.
var differs = map[string]string{
	"meta_list":                    "meta of another kind than object is empty",
	"attempt_junk_string":          "what is no whole number is refused",
	"attempt_alpha":                "what is no whole number is refused",
	"attempt_fraction":             "what is no whole number is refused",
	"attempt_bool":                 "what is no whole number is refused",
	"v_string":                     "what is no whole number is refused",
	"multiplier_is_file_first":     "the environment overrides the file for every setting",
	"fractional_timeout_truncated": "1.5 s is 1.5 s",
}

// noOperation names parts of the files that this package has no operation for.
var noOperation = map[string]string{
	"dead_letter.json key": "the Redis driver makes the key of a list; ReadConfig reads the prefix",
	"dead_letter.json pop": "a letter is published before it is removed; TestDeadLetterEntries reads the entries",
	"dead_letter.json cli": "the command line is in cmd/taskd",
	"dead_letter.json replay crash_between_pop_and_publish": "a letter is always in one place: " +
		"TestReplayRemovesAfterPublishing",
}

func vector[T any](t *testing.T, name string) T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var v T
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v))
	return v
}

// checkEnvelope compares with an envelope as a vector gives it: any member may be left out,
// "<generated>" or "<now>".
func checkEnvelope(t *testing.T, want map[string]any, got Envelope) {
	t.Helper()
	encoded, err := got.Encode()
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, unmarshal(encoded, &members))
	for name, value := range want {
		switch value {
		case "<generated>":
			assert.NotEmpty(t, got.JobID)
		case "<now>":
			assert.InDelta(t, time.Now().Unix(), got.CreatedAt, 60)
		default:
			assert.Equal(t, value, members[name], name)
		}
	}
}

func checkDecodeError(t *testing.T, kind string, err error) {
	t.Helper()
	var decode *DecodeError
	require.ErrorAs(t, err, &decode)
	assert.Equal(t, kind, string(decode.Reason))
	for word, kinds := range map[string]string{"jobType": "missing_job_type", "payload": "payload_not_object"} {
		if kind == kinds {
			assert.ErrorContains(t, err, word)
		}
	}
}

func TestDecodeVectors(t *testing.T) {
	t.Parallel()
	type expect struct {
		OK        bool
		Envelope  map[string]any
		ErrorKind string `json:"error_kind"`
	}
	file := vector[struct {
		Cases []struct {
			Name   string
			Input  string `json:"input_json"`
			Expect expect
		}
	}](t, "envelope_decode.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Decode([]byte(c.Input))
			switch {
			case c.Name == "meta_list":
				require.NoError(t, err)
				assert.Empty(t, got.Meta, differs[c.Name])
			case differs[c.Name] != "":
				checkDecodeError(t, "not_integer", err)
			case !c.Expect.OK:
				checkDecodeError(t, c.Expect.ErrorKind, err)
			default:
				require.NoError(t, err)
				checkEnvelope(t, c.Expect.Envelope, got)
				again, err := got.Encode()
				require.NoError(t, err)
				back, err := Decode(again)
				require.NoError(t, err)
				assert.Equal(t, got, back, "round trip")
			}
		})
	}
}

func TestDecodeLegacyVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name        string
			InputKind   string `json:"input_kind"`
			Input       string
			DefaultType string `json:"default_job_type"`
			Expect      map[string]any
		}
	}](t, "envelope_wrap_legacy.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			inputs := map[string]any{"string": c.Input, "bytes": []byte(c.Input)}
			if c.InputKind == "json" {
				var value any
				require.NoError(t, unmarshal([]byte(c.Input), &value))
				inputs = map[string]any{"decoded": value, "raw": json.RawMessage(c.Input)}
			}
			for kind, input := range inputs {
				got, err := DecodeLegacy(input, c.DefaultType)
				if c.Expect["ok"] != true {
					checkDecodeError(t, c.Expect["error_kind"].(string), err)
					continue
				}
				require.NoError(t, err, kind)
				delete(c.Expect, "ok")
				delete(c.Expect, "treated_as")
				checkEnvelope(t, c.Expect, got)
				c.Expect["ok"] = true
			}
		})
	}
}

func TestAccessorVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		WithAttempt struct {
			Cases []struct{ Input, Expect int }
		} `json:"with_attempt"`
		MetaString struct {
			Cases []struct {
				Meta         map[string]any
				Key, Default string
				Expect       string
				Without      *string `json:"expect_without_default"`
			}
		} `json:"meta_string"`
		Order []string `json:"to_array_field_order"`
		JobID struct {
			Pattern string `json:"original_pattern"`
		} `json:"job_id"`
	}](t, "envelope_accessors.json")

	for _, c := range file.WithAttempt.Cases {
		t.Run(fmt.Sprintf("with_attempt %d", c.Input), func(t *testing.T) {
			e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 2, MaxAttempts: 3, CreatedAt: 9}
			want := e
			want.Attempt = c.Expect
			assert.Equal(t, want, e.WithAttempt(c.Input))
			assert.Equal(t, 2, e.Attempt, "the receiver is unchanged")
		})
	}
	for i, c := range file.MetaString.Cases {
		t.Run(fmt.Sprintf("meta_string %d", i), func(t *testing.T) {
			e := Envelope{Meta: c.Meta}
			assert.Equal(t, c.Expect, e.MetaString(c.Key, c.Default))
			without := ""
			if c.Without != nil {
				without = *c.Without
			}
			assert.Equal(t, without, e.MetaString(c.Key, ""))
		})
	}
	t.Run("member order", func(t *testing.T) {
		data, err := json.Marshal(Envelope{JobType: "t"})
		require.NoError(t, err)
		last := -1
		for _, name := range file.Order {
			at := bytes.Index(data, []byte(`"`+name+`":`))
			assert.Greater(t, at, last, name)
			last = at
		}
		assert.Contains(t, string(data), `"payload":{},"meta":{}`)
	})
	t.Run("job id", func(t *testing.T) {
		e, err := New("t", nil, nil, RetryPolicy{})
		require.NoError(t, err)
		assert.Regexp(t, file.JobID.Pattern, e.JobID)
	})
}

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
