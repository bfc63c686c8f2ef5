// Package clitest runs the commands of chaos as processes: the test binary executes itself.
package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/rundir"
)

// marker is the variable that tells a program that Start started it.
const marker = "CHAOS_TEST_PROGRAM"

// Main runs the tests, or one of the commands if the first argument is not a flag. So a test binary
// that executes itself never runs the tests again.
func Main(m *testing.M, commands ...*cobra.Command) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		os.Exit(m.Run())
	}
	if os.Getenv(marker) != "" {
		os.Unsetenv(marker) // the program's own processes have other standard inputs
		go func() {         // the test binary holds the other end
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(cli.ExitFailed)
		}()
	}
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr, append(commands, rundir.NewGuardCommand())...))
}

// Start starts the program in dir. The program ends with the test binary, also when SIGKILL ends
// that.
func Start(t testing.TB, dir string, stdout, stderr io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), marker+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 10 * time.Second
	_, err = cmd.StdinPipe() // Wait closes it
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd
}

// Run runs the program in dir and waits for its end. It kills a program that runs longer than
// limit.
func Run(t testing.TB, limit time.Duration, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := Start(t, dir, &out, &log, args...)
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}
