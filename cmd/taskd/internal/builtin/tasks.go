// Package builtin has the tasks and the job types that taskd runs without a program of the user.
package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
)

// Tasks are the tasks of a pool.
type Tasks struct {
	names   settings.Names
	allowed patterns
}

// NewTasks returns all tasks. Their exec allows nothing.
func NewTasks() *Tasks { return &Tasks{names: TaskNames()} }

// TaskNames returns the names of all tasks in order.
func TaskNames() []string { return []string{"digest", "echo", "exec", "sleep"} }

// Help describes the tasks.
func (*Tasks) Help() string {
	return `  echo    any value                        → the same value
  sleep   {"for": "1.5s"}                  → after that time, a text
  digest  {"path": FILE}                   → sha256, bytes, lines, compressed
  exec    {"argv": [COMMAND, ...],         → code, signal, stdout, stderr, truncated
           "stdin": "", "dir": "", "env": {}}

Relative paths are relative to the folder in which serve was started. exec runs only commands that
match an --allow-exec pattern, in a shell's syntax for file names. A pattern with a slash is for
the command's absolute path. A pattern without a slash is for a command that is given by its bare
name. exec returns the first 256 KiB of each output stream. It kills the command's process group
when the command or the task's context ends.`
}

// AddFlags adds the flags that choose the tasks and the commands of exec.
func (t *Tasks) AddFlags(flags *pflag.FlagSet) {
	settings.Add(flags, &t.names, "Tasks", "tasks", "built-in tasks that the pool runs, separated by commas")
	t.allowed.addFlag(flags)
}

// Define registers the chosen tasks. Call it once in a process.
func (t *Tasks) Define() error {
	for _, name := range t.names {
		if !slices.Contains(TaskNames(), name) {
			return cli.Usagef("no built-in task is named %q; there are %s", name, strings.Join(TaskNames(), ", "))
		}
	}
	for _, name := range t.names {
		switch name {
		case "digest":
			task.Define(name, digest)
		case "echo":
			task.Define(name, echo)
		case "exec":
			task.Define(name, t.allowed.run)
		case "sleep":
			task.Define(name, sleep)
		}
	}
	return nil
}

// echo returns its argument.
func echo(_ context.Context, v any) (any, error) { return v, nil }

// A nap is the argument of the task sleep.
type nap struct {
	For string `msgpack:"for"` // a duration such as "1.5s"
}

// sleep waits for a time, or until its context ends.
func sleep(ctx context.Context, n nap) (string, error) {
	d, err := time.ParseDuration(n.For)
	if err != nil {
		return "", fmt.Errorf(`want {"for": DURATION}, such as {"for": "1.5s"}: %w`, err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return "slept " + d.String(), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
