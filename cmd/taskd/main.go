// Command taskd runs a pool of task workers and talks to it. "taskd --help"
// explains it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// Exit codes, as the help and docs/operations.md list them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotRun      = 3
	exitMayHaveRun  = 4
	exitLost        = 5
	exitRestart     = 6
	exitInterrupted = 130
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	root, started := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	refuseUnknownShells(root)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if !*started {
		code = exitUsage
	}
	var config *task.ConfigError
	if errors.As(err, &config) {
		err = explainConfig(cmd.Flags(), config)
	}
	fmt.Fprintf(stderr, "taskd: %v\n", err)
	var own *exitError
	if errors.As(err, &own) && own.advice != "" {
		fmt.Fprintln(stderr, own.advice)
	}
	if errors.Is(err, sqlqueue.ErrSchema) { // although every command migrates
		fmt.Fprintln(stderr, "A table prefix has one set of tables: give --jobs-table and --failed-table as at its first use, or another --table-prefix.")
	}
	return code
}

// An exitError is an error with an exit code of its own, and advice for the user where there is some.
type exitError struct {
	code   int
	err    error
	advice string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var own *exitError
	if errors.As(err, &own) {
		return own.code
	}
	var config *task.ConfigError
	var setting *queue.ConfigError
	if errors.As(err, &config) || errors.As(err, &setting) {
		return exitUsage
	}
	var call *task.Error
	if !errors.As(err, &call) {
		return exitFailed
	}
	switch call.Delivery {
	case task.NotRun:
		return exitNotRun
	case task.Ran:
		return exitFailed
	default:
		return exitMayHaveRun
	}
}
