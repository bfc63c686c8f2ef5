package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
)

// execJobs runs commands that a pattern allows, each under a guard that ends it with this process, or when it
// has not heard of this process for patience. So does this process when it has not heard the pulse for half of it.
func execJobs(allowed patterns, patience time.Duration, pulse string) job.Handler {
	return job.Typed("exec", func(ctx context.Context, c command, _ job.Envelope) job.Result {
		if len(c.Argv) == 0 {
			return job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: errNoCommand})
		}
		path, err := allowed.find(c.Argv[0])
		var notFound *exec.Error
		switch {
		case errors.As(err, &notFound): // another worker may have it
			return job.Retry(err)
		case err != nil:
			return job.Fail(err)
		}
		return job.FromError(c.guarded(ctx, path, patience, hearPulse(pulse, patience/2)))
	})
}

// An endError is a command that did not end with exit code 0.
type endError struct {
	name string
	how  string // exit status 3, or the name of a signal
	tail string // of its standard error
}

func (e *endError) Error() string {
	text := e.name + ": " + e.how
	if e.tail != "" {
		text += ": " + e.tail
	}
	return text
}

// guarded runs the command to its end. When ctx ends first, or what it is run for is not alive, its process group is killed.
func (c command) guarded(ctx context.Context, path string, patience time.Duration, alive func() bool) error {
	said := &tail{out: os.Stderr}
	cmd, lifeline, report, err := c.start(ctx, path, patience, said)
	if err != nil {
		return err
	}
	defer report.Close()
	stop := beat(lifeline, patience/5, alive)
	err = cmd.Wait()
	stop()
	_ = killGroup(cmd.Process.Pid) // for a guard that was killed alone

	var end ending
	if json.NewDecoder(report).Decode(&end) != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s was killed: %w", c.Argv[0], context.Cause(ctx))
		}
		return fmt.Errorf("%s was killed with its guard: %w", c.Argv[0], err)
	}
	if end.Error != "" {
		return errors.New(end.Error)
	}
	if end.How != "" {
		return &endError{c.Argv[0], end.How, said.String()}
	}
	return nil
}

// start starts the guard, which starts the command.
func (c command) start(ctx context.Context, path string, patience time.Duration, said io.Writer) (cmd *exec.Cmd, lifeline, report *os.File, err error) {
	self, err := executable()
	if err != nil {
		return nil, nil, nil, err
	}
	hear, lifeline, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer hear.Close()
	report, tell, err := os.Pipe()
	if err != nil {
		lifeline.Close()
		return nil, nil, nil, err
	}
	defer tell.Close()

	cmd = exec.CommandContext(ctx, self, append([]string{guardName, patience.String(), c.Dir, path}, c.Argv...)...)
	cmd.Env = c.environment()
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = os.Stderr, said
	cmd.ExtraFiles = []*os.File{hear, tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second // for a grandchild that left the group and keeps the pipes
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, errors.Join(err, lifeline.Close(), report.Close())
	}
	return cmd, lifeline, report, nil
}

// environment is the worker's without its database, whose password is none of the command's business.
func (c command) environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, variable("dsn")+"=") {
			env = append(env, v)
		}
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// beat writes to a lifeline while alive, and until stop, which waits. Then it closes it.
func beat(lifeline *os.File, every time.Duration, alive func() bool) (stop func()) {
	stopBeats := periodically(every, func() bool {
		if alive() {
			if _, err := lifeline.Write([]byte{0}); err == nil {
				return true
			}
		}
		lifeline.Close()
		return false
	})
	return func() {
		stopBeats()
		lifeline.Close()
	}
}

// tail keeps the last bytes of what passes through it.
type tail struct {
	out io.Writer
	buf []byte
}

const tailBytes = 500

func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.out.Write(p) // a command need not fail because nobody listens
	t.buf = append(t.buf, p...)
	if len(t.buf) > tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "") }
