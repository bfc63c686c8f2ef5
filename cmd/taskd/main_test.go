package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// taskdPath is the path of the built command.
var taskdPath string

func TestMain(m *testing.M) {
	os.Setenv("TASKD_CONFIG", "") // none, whatever this machine has
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "taskd-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	taskdPath = filepath.Join(dir, "taskd")
	build := append([]string{"build", "-o", taskdPath}, append(buildFlags, ".")...)
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// commandLimit ends a command that hangs.
const commandLimit = 3 * time.Minute

// A process is a running taskd.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string // of standard output
	stderr bytes.Buffer
	ended  chan struct{}
}

// launch starts the command in a folder of the test's own.
func launch(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(taskdPath, args...), lines: make(chan string, 1024), ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 10 * time.Second
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	limit := time.AfterFunc(commandLimit, func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.ended)
		defer limit.Stop()
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			p.lines <- scan.Text()
		}
		close(p.lines)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.ended
	})
	return p
}

// line waits for a line of standard output that contains text.
func (p *process) line(text string) string {
	p.t.Helper()
	for line := range p.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	<-p.ended
	p.t.Fatalf("taskd %v ended without a line %q; standard error:\n%s", p.cmd.Args[1:], text, p.stderr.String())
	return ""
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// wait returns the exit code, the rest of standard output, and standard error.
func (p *process) wait() (code int, stdout, stderr string) {
	var out strings.Builder
	for line := range p.lines {
		out.WriteString(line + "\n")
	}
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), out.String(), p.stderr.String()
}

// taskd runs the command to its end.
func taskd(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return launch(t, dir, args...).wait()
}

// A served is a running pool.
type served struct {
	*process
	dir string
}

// servePool starts a pool in a short folder of its own and waits until it is ready.
func servePool(t *testing.T, args ...string) *served {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "taskd-t")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &served{launch(t, dir, append([]string{"serve"}, args...)...), dir}
	s.line("is ready")
	return s
}

// run runs a command against the pool.
func (s *served) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return taskd(s.t, s.dir, args...)
}

// ok runs a command that must succeed, and returns its output.
func (s *served) ok(args ...string) string {
	s.t.Helper()
	code, stdout, stderr := s.run(args...)
	require.Zero(s.t, code, "taskd %v: %s", args, stderr)
	return stdout
}
