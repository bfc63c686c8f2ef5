package rundir_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/clitest"
	"github.com/taskd-go/task/chaos/internal/rundir"
)

const (
	limit  = time.Minute
	helper = "CHAOS_TEST_HELPER" // makes TestHelper a process that other tests kill
)

func TestMain(m *testing.M) { clitest.Main(m, holdCommand()) }

// holdCommand returns a command that makes the folder of a run, starts processes in it, prints its
// path, and waits.
func holdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hold",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := rundir.New()
			if err != nil {
				return err
			}
			// A process with its own session and one that its parent does not wait for, as servers
			// have them.
			child := exec.Command("sh", "-c", "sleep 1000 & exec sleep 1000")
			child.Dir = filepath.Join(dir.Path, "work")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := os.Mkdir(child.Dir, 0o700); err != nil {
				return err
			}
			if err := child.Start(); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir.Path)
			return child.Wait()
		},
	}
}

// firstLine returns the first line that a process writes to out.
func firstLine(t *testing.T, out io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func assertCleared(t *testing.T, path string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err) && len(rundir.Processes(path)) == 0
	}, limit, 10*time.Millisecond)
}

func TestAKilledRunLeavesNoProcessAndNoFolder(t *testing.T) {
	out, in := io.Pipe()
	cmd := clitest.Start(t, t.TempDir(), in, os.Stderr, "hold")
	path := firstLine(t, out)
	assert.Eventually(t, func() bool { return len(rundir.Processes(path)) == 2 }, limit, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	go func() { _ = cmd.Wait() }()
	assertCleared(t, path)
}

func TestAKilledTestBinaryLeavesNoProcessAndNoFolder(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run", "^TestHelper$")
	cmd.Env = append(os.Environ(), helper+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	path := firstLine(t, out)
	assert.NotEmpty(t, rundir.Processes(path))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	assertCleared(t, path)
}

// TestHelper is a test binary that another test kills.
func TestHelper(t *testing.T) {
	if os.Getenv(helper) == "" {
		t.Skip("it is a part of another test")
	}
	os.Unsetenv(helper)
	_ = clitest.Start(t, t.TempDir(), os.Stdout, os.Stderr, "hold").Wait()
}

func TestTheNextRunClearsWhatAnEarlierOneLeft(t *testing.T) {
	left := filepath.Join("/tmp", fmt.Sprintf("chaos-run-test%d", os.Getpid()))
	require.NoError(t, os.Mkdir(left, 0o700))
	t.Cleanup(func() { os.RemoveAll(left) })
	lock, err := os.Create(filepath.Join(left, "lock"))
	require.NoError(t, err)
	defer lock.Close()
	child := exec.Command("sleep", "1000")
	child.Dir, child.SysProcAttr = left, &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()

	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	dir, err := rundir.New()
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	assert.DirExists(t, left, "a living run holds it")
	assert.Equal(t, []int{child.Process.Pid}, rundir.Processes(left))

	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))
	dir, err = rundir.New()
	require.NoError(t, err)
	assert.NoDirExists(t, left)
	select {
	case <-ended:
	case <-time.After(limit):
		t.Error("the process still runs")
	}
	require.NoError(t, dir.Close())
	assert.NoDirExists(t, dir.Path)
}
