package poolcmd

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/internal/signals"
)

// Status returns the command that shows the workers of a pool.
func Status() *cobra.Command {
	var cfg task.Config
	var asJSON, watch bool
	every := time.Second
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a pool's workers",
		Long: `Status prints a row for each worker of a running pool. While a worker is replaced, its number has
two rows. --json prints one JSON array. --watch repeats until Ctrl-C.

While no task begins or ends, accepted = success + fail + lost + running.`,
		Example: `  taskd status
  taskd status --watch --every 500ms
  taskd status --json | jq '.[].running'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, _, stop := signals.Two(cmd.Context())
			defer stop()
			client, err := dial(ctx, cfg)
			if err != nil {
				return err
			}
			defer client.Close()
			show := printRows
			if asJSON {
				show = printJSON
			}
			if !watch {
				return show(cmd.OutOrStdout(), client.Status())
			}
			return term.Watch(cmd.OutOrStdout(), every, ctx.Done(), func(w io.Writer) error {
				return show(w, client.Status())
			})
		},
	}
	addTargetFlags(cmd.Flags(), &cfg)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat until Ctrl-C")
	cmd.Flags().Var(settings.Duration{P: &every, Rule: settings.Positive}, "every", "interval of --watch")
	return cmd
}

func printRows(out io.Writer, rows []task.WorkerStatus) error {
	lines := []string{"worker\tpid\tstate\trunning\taccepted\tsuccess\tfail\tlost\texpired\tbusy\trestarts\tup"}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s",
			row.Index, row.PID, state(row), row.Running, row.Accepted, row.Success, row.Fail,
			row.Lost, row.Expired, row.Busy, row.Restarts, uptime(row)))
	}
	return term.Numbers(out, lines...)
}

func state(row task.WorkerStatus) string {
	switch {
	case row.Degraded:
		return "degraded"
	case row.PID == 0:
		return "restarting"
	case row.Accepting:
		return "accepting"
	default:
		return "draining"
	}
}

func uptime(row task.WorkerStatus) string {
	if row.PID == 0 {
		return "-"
	}
	return time.Since(row.StartUpTime).Round(time.Second).String()
}

func printJSON(out io.Writer, rows []task.WorkerStatus) error {
	if rows == nil {
		rows = []task.WorkerStatus{} // printed as [] in place of null
	}
	return term.JSON(out, rows)
}
