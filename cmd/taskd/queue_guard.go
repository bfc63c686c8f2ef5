package main

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
)

// guardName is the hidden command under which this program guards another one.
const guardName = "guard-exec"

// The guard's files.
const (
	guardHears = 3 // the lifeline: a byte now and then, its end with the worker
	guardTells = 4 // an ending as JSON
)

// An ending is how a guarded command ended. The zero value is success.
type ending struct {
	How   string // exit status 3, or the name of a signal
	Error string // it could not be run
}

func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:                guardName + " PATIENCE DIR PATH ARGV...",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			patience, err := time.ParseDuration(args[0])
			if err != nil || patience <= 0 || syscall.Getpgrp() != os.Getpid() {
				return usagef("%s is a part of taskd queue work", guardName)
			}
			return guard(patience, &exec.Cmd{Dir: args[1], Path: args[2], Args: args[3:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		},
	}
}

// guard runs a command in its own process group, tells how it ended, and ends the group, itself with it. It does
// not return but with an error.
func guard(patience time.Duration, cmd *exec.Cmd) error {
	// The command must not hold what the worker waits for.
	syscall.CloseOnExec(guardHears)
	syscall.CloseOnExec(guardTells)
	go listen(os.NewFile(guardHears, "lifeline"), patience)

	err := cmd.Run()
	end := ending{}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		end.How = exit.Error()
	case err != nil:
		end.Error = err.Error()
	}
	if err := json.NewEncoder(os.NewFile(guardTells, "report")).Encode(end); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return killOwnGroup()
}

// listen ends the group when the lifeline ends, or when nothing has come for patience.
func listen(lifeline *os.File, patience time.Duration) {
	silence := time.AfterFunc(patience, func() { _ = killOwnGroup() })
	var some [64]byte
	for {
		if _, err := lifeline.Read(some[:]); err != nil {
			_ = killOwnGroup()
			return
		}
		silence.Reset(patience)
	}
}

func killOwnGroup() error { return syscall.Kill(0, syscall.SIGKILL) }

// executable is a path to this very program, also when its file was replaced meanwhile.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
