package queuecmd

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

func (c *commands) list() *cobra.Command {
	var name string
	listing := term.Listing[queue.JobInfo]{
		Head: "id\tqueue\tstate\ttype\tpriority\tattempts\tdue\tworker",
		Row: func(j queue.JobInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d/%s\t%s\t%s", j.ID, term.Cell(j.Queue, 30), j.State,
				term.Cell(j.Type, 40), j.Priority, j.Attempts, tries(j.MaxAttempts), term.Stamp(j.AvailableAt),
				term.Cell(j.ReservedBy, 80))
		},
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the jobs",
		Long: `List shows the ready, delayed and reserved jobs in the order of their ids. The column attempts has
the number of attempts that have begun and the number allowed. --json prints one array, in which
backoff and timeout are nanoseconds.`,
		Example: `  taskd queue list --queue mail --limit 20
  taskd queue list --json | jq '.[] | select(.state == "reserved")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				return listing.Show(cmd.OutOrStdout(), db.Queue.List(ctx, name))
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().Var(settings.Count{P: &listing.Limit, Max: math.MaxInt}, "limit", "at most this many; 0: all")
	cmd.Flags().BoolVar(&listing.JSON, "json", false, "print JSON")
	return cmd
}

func tries(n int) string {
	if n >= job.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}
