// Package clitest runs the commands of chaos as processes of their own: the test binary executes itself.
package clitest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// marker is the variable that makes a test binary the program chaos.
const marker = "CHAOS_TEST_PROGRAM"

// Main runs the tests, or is the program with some commands if Run or a process of that program started it.
func Main(m *testing.M, commands ...*cobra.Command) {
	if os.Getenv(marker) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr, commands...))
	}
	os.Exit(m.Run())
}

// Run runs the program in dir, with its temporary files there, and waits for its end. It kills a program that runs
// longer than limit.
func Run(t *testing.T, limit time.Duration, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), marker+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}
