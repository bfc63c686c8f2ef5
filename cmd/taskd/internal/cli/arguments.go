package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Args returns a rule that accepts min to max arguments. For another number its error is the
// command's name followed by want.
func Args(min, max int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < min || len(args) > max {
			return Usagef("%s %s; see %s --help", cmd.Name(), want, cmd.CommandPath())
		}
		return nil
	}
}

// NoArgs is the rule of a command that takes no arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, and got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// Plural returns n and the name of what is counted, with an s unless n is 1.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
