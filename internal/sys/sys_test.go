package sys

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const limit = 10 * time.Second

// helpers are what the test binary does when it is started again as another process.
var helpers = map[string]func(args []string) int{
	"exit":  func([]string) int { return 7 },
	"sleep": func([]string) int { return sleep() },
	"clock": func([]string) int { fmt.Println(Now()); return 0 },
}

func sleep() int {
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return 0
}

func TestMain(m *testing.M) {
	if name := os.Getenv("SYS_TEST_HELPER"); name != "" {
		os.Exit(helpers[name](os.Args[1:]))
	}
	os.Exit(m.Run())
}

// helperEnv is the environment that makes the test binary a helper.
func helperEnv(name string) []string {
	return append(os.Environ(), "SYS_TEST_HELPER="+name, "GORACE=atexit_sleep_ms=0")
}

func helperCommand(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = helperEnv(name)
	cmd.Stderr = os.Stderr
	return cmd
}

// startHelper starts a helper through Start, with files as its descriptors from 3 on.
func startHelper(t *testing.T, name string, stdout *os.File, files ...*os.File) *Process {
	t.Helper()
	self, err := OpenSelf()
	require.NoError(t, err)
	defer self.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	p, err := Start(Spawn{
		Exe:   self,
		Argv:  []string{"helper " + name},
		Env:   helperEnv(name),
		Files: append([]*os.File{null, stdout, os.Stderr}, files...),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		p.KillGroup()
		p.Reap()
	})
	return p
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		require.FailNow(t, what+" took too long")
	}
}

func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func TestExitCodeAndSignal(t *testing.T) {
	p := startHelper(t, "exit", nil)
	within(t, "the exit", async(p.Exited))
	assert.NoError(t, p.Signal(syscall.Signal(0)), "ended, but not reaped: the handle still means it")
	state, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, ExitState{Code: 7}, state)
	assert.ErrorIs(t, p.Signal(syscall.SIGKILL), os.ErrProcessDone)
	again, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, state, again)

	p = startHelper(t, "sleep", nil)
	require.NoError(t, p.Signal(syscall.SIGKILL))
	state, ok = p.Reap()
	assert.True(t, ok)
	assert.Equal(t, ExitState{Signal: 9}, state)
}

func TestListenIsPrivateFromTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600)|os.ModeSocket, st.Mode())
}

// A listener that is handed to a child stays as it is: were it blocking, a
// deadline would not end an accept, here and in every process that shares it.
func TestStartLeavesListenersNonBlocking(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer l.Close()
	f, err := l.File()
	require.NoError(t, err)
	defer f.Close()
	p := startHelper(t, "sleep", nil, f)
	defer p.KillGroup()
	require.NoError(t, l.SetDeadline(time.Now()))
	within(t, "the accept", async(func() {
		_, err := l.Accept()
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}))
}
