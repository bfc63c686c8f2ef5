package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

const help = `chaos pool loads a pool with calls while its workers are killed, stopped, terminated and fed with
garbage, and checks that every answer was true:

  go run ./chaos pool --duration 60s --workers 4 --seed 1

chaos queue kills workers, processes of their pools and database servers at each step of a job's
life, and checks that no job is lost, and none runs again without a reason:

  go run ./chaos queue --duration 60s --seed 1

Exit codes:
  0    everything is as promised
  1    something is off, or chaos itself failed
  2    wrong flags or arguments; nothing was started
  130  interrupted`

// Run runs the command that args name, and returns the exit code of the program.
func Run(args []string, stdout, stderr io.Writer, commands ...*cobra.Command) int {
	started := false
	root := &cobra.Command{
		Use:               "chaos",
		Short:             "Put a pool or a queue under stress",
		Long:              help,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
	}
	root.AddCommand(commands...)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(stderr, "chaos: %v\n", err)
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case !started:
		return ExitUsage
	default:
		return ExitFailed
	}
}
