package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// outputLimit is how many bytes of a command's standard output, and as many of
// its standard error, come back.
const outputLimit = 256 << 10

// A command is what the task exec takes, and a job of that type.
type command struct {
	Argv  []string          `msgpack:"argv" json:"argv"`
	Stdin string            `msgpack:"stdin" json:"stdin"`
	Dir   string            `msgpack:"dir" json:"dir"` // empty: the worker's
	Env   map[string]string `msgpack:"env" json:"env"` // beside the worker's own
}

// An execution is what the task exec returns.
type execution struct {
	Code      int    `msgpack:"code"`   // exit code, -1 when a signal ended it
	Signal    string `msgpack:"signal"` // its name, or empty
	Stdout    string `msgpack:"stdout"`
	Stderr    string `msgpack:"stderr"`
	Truncated bool   `msgpack:"truncated"` // there was more output than outputLimit
}

// patterns say which commands exec may run, as filepath.Match understands them: one with a slash
// is matched with the command's absolute path, one without with a bare name that
// is looked up in PATH. "/tmp/sh" does not match "sh".
type patterns []string

// Set adds patterns that are separated by commas.
func (p *patterns) Set(s string) error {
	for pattern := range strings.SplitSeq(s, ",") {
		if _, err := filepath.Match(pattern, ""); err != nil || pattern == "" {
			return errors.New("want patterns of names or absolute paths, such as git or /usr/bin/*")
		}
		*p = append(*p, pattern)
	}
	return nil
}
func (p *patterns) String() string { return strings.Join(*p, ",") }
func (*patterns) Type() string     { return "patterns" }

// A deniedError is a command that may not run.
type deniedError struct {
	name, path string
	allowed    patterns
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("command %q (%s) matches no pattern of --allow-exec, which are: %s",
		e.name, e.path, cmp.Or(e.allowed.String(), "none"))
}

// find returns the path of a command that may run. An *exec.Error says that it may, and is not there.
func (p patterns) find(name string) (string, error) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return "", fmt.Errorf("command %q: want a name or an absolute path", name)
	}
	path, notFound := exec.LookPath(name)
	if notFound != nil {
		path = name
	}
	path = filepath.Clean(path)
	for _, pattern := range p {
		subject := path
		if !strings.Contains(pattern, "/") {
			subject = name
		}
		if ok, _ := filepath.Match(pattern, subject); ok {
			return path, notFound
		}
	}
	return "", &deniedError{name, path, p}
}

var errNoCommand = errors.New(`want {"argv": [COMMAND, ARGUMENT, ...]}`)

// run runs a command in a process group of its own. The group is killed at the end of ctx, and
// what the command leaves behind in it when the command ends.
func (p patterns) run(ctx context.Context, c command) (execution, error) {
	if len(c.Argv) == 0 {
		return execution{}, errNoCommand
	}
	path, err := p.find(c.Argv[0])
	if err != nil {
		return execution{}, err
	}
	var stdout, stderr bounded
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = c.Argv
	cmd.Dir = c.Dir
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = os.Environ()
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second // for a grandchild that left the group and keeps the pipes

	if err := cmd.Start(); err != nil {
		return execution{}, err
	}
	err = cmd.Wait()
	// The group's id stays taken as long as anyone is in it.
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
		Signal:    endedBy(cmd.ProcessState),
		Stdout:    stdout.String(),
		Stderr:    stderr.String(),
		Truncated: stdout.more || stderr.more,
	}, nil
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func endedBy(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}

// bounded keeps the first outputLimit bytes of what is written to it.
type bounded struct {
	buf  bytes.Buffer
	more bool
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
