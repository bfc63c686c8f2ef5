package job

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name   string
			File   map[string]any
			Env    map[string]string
			Expect struct {
				MaxAttempts int     `json:"default_max_attempts"`
				BaseMs      int64   `json:"base_delay_ms"`
				Multiplier  float64 `json:"backoff_multiplier"`
				MaxMs       int64   `json:"max_delay_ms"`
				Timeout     float64 `json:"handler_timeout_seconds"`
				Driver      string  `json:"dlq_driver"`
				Prefix      string  `json:"dlq_key_prefix"`
			}
			PolicyMax int `json:"policy_max_attempts"`
		}
	}](t, "job_config.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			switch c.Name {
			case "multiplier_is_file_first":
				c.Expect.Multiplier = 4
			case "fractional_timeout_truncated":
				c.Expect.Timeout = 1.5
			}
			got, _ := ReadConfig(c.File, func(name string) string { return c.Env[name] })
			want := c.Expect
			assert.Equal(t, Config{
				MaxAttempts: want.MaxAttempts, BaseDelay: time.Duration(want.BaseMs) * time.Millisecond,
				Multiplier: want.Multiplier, MaxDelay: time.Duration(want.MaxMs) * time.Millisecond,
				Timeout:    time.Duration(want.Timeout * float64(time.Second)),
				DeadLetter: DeadLetterConfig{Driver: want.Driver, KeyPrefix: want.Prefix},
			}, got)
			assert.Equal(t, c.PolicyMax, got.Policy().MaxAttempts)
			assert.Equal(t, 0.2, got.Policy().Jitter)
		})
	}
}

func TestConfigBuild(t *testing.T) {
	t.Parallel()
	build := func(driver string, drivers map[string]OpenDeadLetters) (*Parts, error) {
		cfg := DefaultConfig()
		cfg.DeadLetter.Driver = driver
		cfg.DeadLetter.Path = filepath.Join(t.TempDir(), "dead.jsonl")
		return cfg.Build(drivers, answering(Success()))
	}
	for driver, want := range map[string]DeadLetters{
		"log_only": LogDeadLetters{}, "memory": &MemoryDeadLetters{}, "file": &FileDeadLetters{},
	} {
		parts, err := build(driver, nil)
		require.NoError(t, err, driver)
		assert.IsType(t, want, parts.DeadLetters)
		assert.True(t, parts.Registry.Has("t"))
		assert.Equal(t, 120*time.Second, parts.Runner.Timeout)
		assert.Equal(t, DefaultRetryPolicy(), parts.Runner.Policy)
		e, err := parts.Publisher(func(context.Context, Envelope) error { return nil }).Dispatch(t.Context(), "t", nil, nil)
		require.NoError(t, err)
		assert.Equal(t, 5, e.MaxAttempts)
		require.NoError(t, parts.Close())
	}

	_, err := build("redis_list", nil)
	assert.ErrorContains(t, err, `"redis_list"`)
	assert.ErrorContains(t, err, "github.com/taskd-go/task/contrib")
	_, err = build("carrier_pigeon", nil)
	assert.ErrorContains(t, err, `"carrier_pigeon"`)
	assert.NotContains(t, err.Error(), "contrib")

	own := NewMemoryDeadLetters()
	parts, err := build("redis_list", map[string]OpenDeadLetters{"redis_list": func(c Config) (DeadLetters, error) {
		assert.Equal(t, "job:dead:", c.DeadLetter.KeyPrefix)
		return own, nil
	}})
	require.NoError(t, err)
	assert.Same(t, own, parts.DeadLetters)

	cfg := DefaultConfig()
	cfg.DeadLetter.Driver = "file"
	_, err = cfg.Build(nil)
	assert.ErrorContains(t, err, "JOB_DLQ_PATH")
}

func TestReadConfigNamesWhatItIgnores(t *testing.T) {
	t.Parallel()
	_, ignored := ReadConfig(map[string]any{"default_max_attempts": "abc", "dead_letter": "no"},
		func(name string) string { return map[string]string{"JOB_BACKOFF_MULTIPLIER": "NaN"}[name] })
	assert.ElementsMatch(t, []string{"default_max_attempts=abc", "dead_letter=no", "JOB_BACKOFF_MULTIPLIER=NaN"}, ignored)
}
