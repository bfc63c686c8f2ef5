package poolcmd

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
)

// poolConfig parses flags as taskd serve does.
func poolConfig(t *testing.T, args ...string) (cfg task.Config, err error) {
	t.Helper()
	t.Setenv("TASKD_CONFIG", "")
	var r settings.Reader
	cmd := &cobra.Command{Use: "serve"}
	r.AddFlag(cmd.Flags())
	addPoolFlags(cmd.Flags(), &cfg)
	require.NoError(t, cmd.ParseFlags(args))
	err = r.Read(cmd)
	return cfg, err
}

func TestFlagsWithoutArgumentsAreTheLibrarysDefaults(t *testing.T) {
	cfg, err := poolConfig(t)
	require.NoError(t, err)
	cfg.TempDir = t.TempDir()
	named, err := task.New(cfg)
	require.NoError(t, err)
	empty, err := task.New(task.Config{TempDir: cfg.TempDir})
	require.NoError(t, err)
	assert.Equal(t, empty.Config(), named.Config())
}

func TestFlagsReachTheirFields(t *testing.T) {
	cfg, err := poolConfig(t, "--name", "app", "--dir", "/run/app", "--workers", "8", "--max-running", "16",
		"--max-package-size", "64KiB", "--push-timeout", "-1s", "--soft-time-limit", "1s", "--time-limit", "2s",
		"--max-tasks", "100", "--max-age", "1h", "--max-memory", "1GiB", "--max-replacing", "2",
		"--start-timeout", "20s", "--drain-timeout", "1m", "--frame-timeout", "2s", "--drain-grace", "3s", "--env", "PATH, HOME")
	require.NoError(t, err)
	assert.Equal(t, task.Config{
		ServerName: "app", TempDir: "/run/app", WorkerNum: 8, MaxRunningNum: 16, MaxPackageSize: 64 << 10,
		PushTimeout: -time.Second, SoftTimeLimit: time.Second, TimeLimit: 2 * time.Second,
		MaxTasksPerWorker: 100, MaxWorkerAge: time.Hour, MaxWorkerMemory: 1 << 30, MaxReplacing: 2,
		StartTimeout: 20 * time.Second, DrainTimeout: time.Minute, FrameTimeout: 2 * time.Second,
		DrainGrace: 3 * time.Second, Env: []string{"PATH", "HOME"},
	}, cfg)
}

func TestEnvironmentStandsInForFlags(t *testing.T) {
	t.Setenv("TASKD_WORKERS", "8")
	t.Setenv("TASKD_DRAIN_TIMEOUT", "1m")
	t.Setenv("TASKD_ENV", "")
	cfg, err := poolConfig(t, "--workers", "4")
	require.NoError(t, err)
	assert.Equal(t, 4, cfg.WorkerNum, "a flag overrides its variable")
	assert.Equal(t, time.Minute, cfg.DrainTimeout)
	assert.Equal(t, []string{}, cfg.Env, "given but empty: the workers get nothing")
}

func TestBadEnvironmentIsNamed(t *testing.T) {
	t.Setenv("TASKD_WORKERS", "0")
	_, err := poolConfig(t)
	assert.EqualError(t, err, `TASKD_WORKERS="0": want a whole number from 1 to 512`)
}
