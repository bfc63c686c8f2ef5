package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/taskd-go/task/cmd/taskd/internal/periodic"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/job"
)

// execJobs runs allowed commands, each under a guard. The guard kills the command when this process
// ends, when this process has been silent for limit, and when alive, which watch returns for each
// command, reports false.
func execJobs(allowed patterns, limit time.Duration, watch func() (alive func() bool)) job.Handler {
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
		return job.FromError(c.guarded(ctx, path, limit, watch()))
	})
}

// An ExitError is a command that did not end with exit code 0.
type ExitError struct {
	name   string
	how    string // exit status 3, or the name of a signal
	stderr string // its end
}

func (e *ExitError) Error() string {
	text := e.name + ": " + e.how
	if e.stderr != "" {
		text += ": " + e.stderr
	}
	return text
}

// guarded runs the command to its end. Its process group is killed when ctx ends, or when alive
// reports false.
func (c command) guarded(ctx context.Context, path string, limit time.Duration, alive func() bool) error {
	stderr := &tail{out: os.Stderr}
	cmd, lifeline, report, err := c.start(ctx, path, limit, stderr)
	if err != nil {
		return err
	}
	defer report.Close()
	stop := keepAlive(lifeline, limit/5, alive)
	err = cmd.Wait()
	stop()
	_ = killGroup(cmd.Process.Pid) // if only the guard was killed

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
		return &ExitError{c.Argv[0], end.How, stderr.String()}
	}
	return nil
}

// start starts the guard, which starts the command.
func (c command) start(ctx context.Context, path string, limit time.Duration, stderr io.Writer) (
	cmd *exec.Cmd, lifeline, report *os.File, err error) {
	self, err := executable()
	if err != nil {
		return nil, nil, nil, err
	}
	lifelineIn, lifeline, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer lifelineIn.Close()
	report, reportOut, err := os.Pipe()
	if err != nil {
		lifeline.Close()
		return nil, nil, nil, err
	}
	defer reportOut.Close()

	cmd = c.inGroup(ctx, self, os.Stderr, stderr)
	cmd.Args = append([]string{self, guardName, limit.String(), c.Dir, path}, c.Argv...)
	// The password of the worker's database is not for the command.
	cmd.Env = c.environment(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, settings.Variable(settings.DSN)+"=")
	}))
	cmd.ExtraFiles = []*os.File{lifelineIn, reportOut}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, errors.Join(err, lifeline.Close(), report.Close())
	}
	return cmd, lifeline, report, nil
}

// keepAlive writes to a lifeline in each period while alive reports true, and closes it then or at
// stop. stop waits.
func keepAlive(lifeline *os.File, period time.Duration, alive func() bool) (stop func()) {
	stopWriting := periodic.Call(period, func() bool {
		if alive() {
			if _, err := lifeline.Write([]byte{0}); err == nil {
				return true
			}
		}
		lifeline.Close()
		return false
	})
	return func() {
		stopWriting()
		lifeline.Close()
	}
}

// A tail copies to out and holds the last bytes.
type tail struct {
	out io.Writer
	buf []byte
}

const tailBytes = 500

func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.out.Write(p) // a closed standard error must not fail the command
	t.buf = append(t.buf, p...)
	if len(t.buf) > tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "") }
