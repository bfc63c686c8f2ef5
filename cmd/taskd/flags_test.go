package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// poolConfig parses flags as taskd serve does.
func poolConfig(args ...string) (task.Config, error) {
	var cfg task.Config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	addPoolFlags(flags, &cfg)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	return cfg, readEnvironment(flags)
}

func TestFlagsWithoutArgumentsAreTheLibrarysDefaults(t *testing.T) {
	cfg, err := poolConfig()
	require.NoError(t, err)
	cfg.TempDir = t.TempDir()
	named, err := task.New(cfg)
	require.NoError(t, err)
	empty, err := task.New(task.Config{TempDir: cfg.TempDir})
	require.NoError(t, err)
	assert.Equal(t, empty.Config(), named.Config())
}

func TestFlagsReachTheirFields(t *testing.T) {
	cfg, err := poolConfig("--name", "app", "--dir", "/run/app", "--workers", "8", "--max-running", "16", "--max-package-size", "64KiB",
		"--push-timeout", "-1s", "--soft-time-limit", "1s", "--time-limit", "2s", "--max-tasks", "100", "--max-age", "1h", "--max-memory", "1GiB",
		"--max-replacing", "2", "--start-timeout", "20s", "--drain-timeout", "1m", "--frame-timeout", "2s", "--drain-grace", "3s", "--env", "PATH, HOME")
	require.NoError(t, err)
	assert.Equal(t, task.Config{
		ServerName: "app", TempDir: "/run/app", WorkerNum: 8, MaxRunningNum: 16, MaxPackageSize: 64 << 10,
		PushTimeout: -time.Second, SoftTimeLimit: time.Second, TimeLimit: 2 * time.Second,
		MaxTasksPerWorker: 100, MaxWorkerAge: time.Hour, MaxWorkerMemory: 1 << 30, MaxReplacing: 2,
		StartTimeout: 20 * time.Second, DrainTimeout: time.Minute, FrameTimeout: 2 * time.Second, DrainGrace: 3 * time.Second,
		Env: []string{"PATH", "HOME"},
	}, cfg)
}

func TestEnvironmentStandsInForFlags(t *testing.T) {
	t.Setenv("TASKD_WORKERS", "8")
	t.Setenv("TASKD_DRAIN_TIMEOUT", "1m")
	t.Setenv("TASKD_ENV", "")
	cfg, err := poolConfig("--workers", "4")
	require.NoError(t, err)
	assert.Equal(t, 4, cfg.WorkerNum, "a flag overrides its variable")
	assert.Equal(t, time.Minute, cfg.DrainTimeout)
	assert.Equal(t, []string{}, cfg.Env, "given but empty: the workers get nothing")
}

func TestBadEnvironmentIsNamed(t *testing.T) {
	t.Setenv("TASKD_WORKERS", "0")
	_, err := poolConfig()
	assert.EqualError(t, err, `TASKD_WORKERS="0": want a whole number from 1 to 512`)
}

func TestSizesPrintInTheLargestUnitThatDividesThem(t *testing.T) {
	for text, want := range map[string]string{"512": "512", "2048": "2KiB", "3MiB": "3MiB", "1536KiB": "1536KiB", "1GiB": "1GiB"} {
		var n int
		z := size[int]{&n, 0}
		require.NoError(t, z.Set(text))
		assert.Equal(t, want, z.String())
	}
}

func TestSizesThatOverflowAreRefused(t *testing.T) {
	for _, text := range []string{"9223372036854775808", "8589934592GiB", "17179869184GiB", "-1", "1.5MiB", "NaN", "MiB", ""} {
		var n int
		assert.Error(t, size[int]{&n, 0}.Set(text), text)
	}
}
