package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
)

// guardName is the hidden command that guards a command of an exec job.
const guardName = "guard-exec"

// File descriptors of the guard.
const (
	lifelineFD = 3 // a byte now and then; ends with the worker
	reportFD   = 4 // an ending as JSON
)

// An ending says how a guarded command ended. The zero value is success.
type ending struct {
	How   string // exit status 3, or the name of a signal
	Error string // why the command could not run
}

// Guard returns a hidden command. Jobs runs it, in the same executable, to guard each command of an
// exec job.
func Guard() *cobra.Command {
	return &cobra.Command{
		Use:                guardName + " LIMIT DIR PATH ARGV...",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			limit, err := time.ParseDuration(args[0])
			if err != nil || limit <= 0 || syscall.Getpgrp() != os.Getpid() {
				return cli.Usagef("%s is a part of taskd queue work", guardName)
			}
			return guard(limit, &exec.Cmd{
				Dir: args[1], Path: args[2], Args: args[3:],
				Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			})
		},
	}
}

// guard runs a command in its own process group, reports how it ended, and kills the group with
// itself. It returns only after an error.
func guard(limit time.Duration, cmd *exec.Cmd) error {
	// The command must not hold the pipes open for which the worker waits.
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(reportFD)
	go listen(os.NewFile(lifelineFD, "lifeline"), limit)

	err := cmd.Run()
	end := ending{}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		end.How = exit.Error()
	case err != nil:
		end.Error = err.Error()
	}
	if err := json.NewEncoder(os.NewFile(reportFD, "report")).Encode(end); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return killOwnGroup()
}

// listen kills the group when the lifeline ends, or when nothing has come for limit.
func listen(lifeline *os.File, limit time.Duration) {
	silence := time.AfterFunc(limit, func() { _ = killOwnGroup() })
	var some [64]byte
	for {
		if _, err := lifeline.Read(some[:]); err != nil {
			_ = killOwnGroup()
			return
		}
		silence.Reset(limit)
	}
}

func killOwnGroup() error { return syscall.Kill(0, syscall.SIGKILL) }

// executable returns a path to this program, also if its file was replaced.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
