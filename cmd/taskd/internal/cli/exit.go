// Package cli has what all commands share: exit codes and errors, and rules for arguments.
package cli

import (
	"errors"
	"fmt"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/queue"
)

// Exit codes, as the help and docs/operations.md list them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotRun      = 3
	ExitMayHaveRun  = 4
	ExitLost        = 5
	ExitRestart     = 6
	ExitInterrupted = 130
)

// An Error is an error with an exit code.
type Error struct {
	Code   int
	Err    error
	Advice string // a line for the user; empty: none
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error with ExitUsage.
func Usagef(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// ErrInterrupted ends a command that SIGINT or SIGTERM stopped.
var ErrInterrupted error = &Error{Code: ExitInterrupted, Err: errors.New("interrupted")}

// ExitCode returns the exit code for err.
func ExitCode(err error) int {
	var own *Error
	if errors.As(err, &own) {
		return own.Code
	}
	var config *task.ConfigError
	var setting *queue.ConfigError
	if errors.As(err, &config) || errors.As(err, &setting) {
		return ExitUsage
	}
	var call *task.Error
	if !errors.As(err, &call) {
		return ExitFailed
	}
	switch call.Delivery {
	case task.NotRun:
		return ExitNotRun
	case task.Ran:
		return ExitFailed
	default:
		return ExitMayHaveRun
	}
}
