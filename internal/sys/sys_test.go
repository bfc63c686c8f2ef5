package sys

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const limit = time.Minute

// helpers are the functions that the test binary runs in other processes.
var helpers = map[string]func(args []string) int{
	"exit":    func([]string) int { return 7 },
	"sleep":   sleep,
	"clock":   func([]string) int { fmt.Println(Now()); return 0 },
	"family":  family,
	"titled":  titled,
	"adopt":   adopt,
	"read":    func([]string) int { return readFile(3) },
	"lock":    lock,
	"connect": connect,
}

func sleep([]string) int {
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

// output runs a helper to its end and returns what it printed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

func helperCommand(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = helperEnv(name)
	cmd.Stderr = os.Stderr
	return cmd
}

// startTold starts a helper and returns when it has printed its first line.
func startTold(t *testing.T, name string, files ...*os.File) (p *Process, line string, out *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	p = startHelper(t, name, w, files...)
	require.NoError(t, w.Close())
	out = bufio.NewReader(r)
	line, err = out.ReadString('\n')
	require.NoError(t, err)
	return p, strings.TrimSpace(line), out
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
