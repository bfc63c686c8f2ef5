package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// oneTask is the rule of the arguments of call and async.
func oneTask(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usagef("%s needs TASK [JSON]; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

// oneJob is the rule of the arguments of queue push.
func oneJob(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usagef("%s needs TYPE [JSON]; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s needs one ID; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

func maybeID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one ID; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, and got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// plural is n with the name of what is counted.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
