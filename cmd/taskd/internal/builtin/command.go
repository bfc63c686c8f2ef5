package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// outputLimit is how many bytes of a command's standard output return, and how many of its standard
// error.
const outputLimit = 256 << 10

// A command is the argument of the task exec, and the payload of a job of that type.
type command struct {
	Argv  []string          `msgpack:"argv" json:"argv"`
	Stdin string            `msgpack:"stdin" json:"stdin"`
	Dir   string            `msgpack:"dir" json:"dir"` // empty: the worker's
	Env   map[string]string `msgpack:"env" json:"env"` // in addition to the worker's
}

// An execution is the result of the task exec.
type execution struct {
	Code      int    `msgpack:"code"`   // exit code, -1 after a signal
	Signal    string `msgpack:"signal"` // the name of the signal that ended the command, or empty
	Stdout    string `msgpack:"stdout"`
	Stderr    string `msgpack:"stderr"`
	Truncated bool   `msgpack:"truncated"` // there was more output than outputLimit
}

var errNoCommand = errors.New(`want {"argv": [COMMAND, ARGUMENT, ...]}`)

// run runs a command in its own process group. It kills the group when ctx ends, and what is left
// of the group when the command ends.
func (p patterns) run(ctx context.Context, c command) (execution, error) {
	if len(c.Argv) == 0 {
		return execution{}, errNoCommand
	}
	path, err := p.find(c.Argv[0])
	if err != nil {
		return execution{}, err
	}
	var stdout, stderr bounded
	cmd := c.inGroup(ctx, path, &stdout, &stderr)
	cmd.Args, cmd.Dir = c.Argv, c.Dir
	cmd.Env = c.environment(os.Environ())
	if err := cmd.Start(); err != nil {
		return execution{}, err
	}
	err = cmd.Wait()
	// The group keeps its id as long as it has a member.
	_ = killGroup(cmd.Process.Pid)
	if ctx.Err() != nil {
		return execution{}, fmt.Errorf("%s was killed: %w", c.Argv[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return execution{}, err
	}
	return execution{
		Code:      cmd.ProcessState.ExitCode(),
		Signal:    signalOf(cmd.ProcessState),
		Stdout:    stdout.String(),
		Stderr:    stderr.String(),
		Truncated: stdout.more || stderr.more,
	}, nil
}

// inGroup returns a process that leads its own group and has the command's input. The end of ctx
// kills the group.
func (c command) inGroup(ctx context.Context, path string, stdout, stderr io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second // for a grandchild that left the group and holds the pipes
	return cmd
}

// environment returns env with the command's variables.
func (c command) environment(env []string) []string {
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	return env
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}

// A bounded buffer holds the first outputLimit bytes.
type bounded struct {
	buf  bytes.Buffer
	more bool // it dropped some
}

func (b *bounded) Write(p []byte) (int, error) {
	room := outputLimit - b.buf.Len()
	if len(p) > room {
		b.more = true
		b.buf.Write(p[:room])
		return len(p), nil
	}
	return b.buf.Write(p)
}

func (b *bounded) String() string { return b.buf.String() }
