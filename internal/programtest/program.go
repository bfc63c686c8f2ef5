// Package programtest runs the program of a main package in its tests: the test binary, started
// again, calls main.
package programtest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// Variables in the environment of a program.
const (
	marker   = "TASKD_TEST_PROGRAM"  // its processes have it too
	lifeline = "TASKD_TEST_LIFELINE" // its file 3 is a pipe that ends with the test binary; its processes have neither
)

// limit bounds how long a program runs. An idle machine needs a tenth of it.
const limit = 5 * time.Minute

// Main is the whole of a TestMain. In a started program it calls program, elsewhere it runs the
// tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(marker) == "" && !task.IsWorker() { // a pool may give its workers another environment
		os.Exit(m.Run())
	}
	if os.Getenv(lifeline) != "" {
		endWithTest()
	}
	// A pool refuses to start in a test binary that has not called RunIfWorker. This call matches
	// no pool, so that a worker runs program up to its Start, as it does outside of tests.
	task.RunIfWorker(task.Config{ServerName: "no pool has this name"})
	program()
	os.Exit(0)
}

// endWithTest ends this process when its test binary ends, also if that is killed.
func endWithTest() {
	const fd = 3
	syscall.CloseOnExec(fd)
	os.Unsetenv(lifeline)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(fd, "lifeline"))
		os.Exit(1)
	}()
}

// A Program is a started program.
type Program struct {
	t      testing.TB
	cmd    *exec.Cmd
	lines  chan string // of standard output
	stderr bytes.Buffer
	ended  chan struct{}
}

// Start starts the program in dir. env extends the environment. The program ends with the test at
// the latest.
func Start(t testing.TB, dir string, env []string, args ...string) *Program {
	t.Helper()
	p := &Program{t: t, lines: make(chan string, 1024), ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Dir = dir
	p.cmd.Env = append(append(os.Environ(), marker+"=1", lifeline+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 10 * time.Second
	held, life, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.ExtraFiles = []*os.File{held}
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	err = p.cmd.Start()
	require.NoError(t, errors.Join(err, held.Close()))
	late := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.ended)
		defer late.Stop()
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			p.lines <- scan.Text()
		}
		close(p.lines)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = life.Close()
		_ = p.cmd.Process.Kill() // also if it is stopped
		for range p.lines {
		}
		<-p.ended
	})
	return p
}

// Line waits for a line of standard output that contains text, and returns it.
func (p *Program) Line(text string) string {
	p.t.Helper()
	for line := range p.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	<-p.ended
	p.t.Fatalf("the program ended without a line %q; the end of its standard error:\n%s", text, tail(p.stderr.String()))
	return ""
}

// tail returns the last lines of text.
func tail(text string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// Signal sends sig to the program.
func (p *Program) Signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// Wait returns the exit code, the rest of standard output, and standard error.
func (p *Program) Wait() (code int, stdout, stderr string) {
	var out strings.Builder
	for line := range p.lines {
		out.WriteString(line + "\n")
	}
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), out.String(), p.stderr.String()
}
