package queuecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/queue"
)

func (c *commands) size() *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "size",
		Short: "Count the jobs",
		Long: fmt.Sprintf(`Size counts the jobs of one queue or of all. Ready jobs are due, delayed jobs are
not due yet, and reserved jobs are with a worker, or were when it ended. size is the sum, without
dead letters.

Each state is counted up to %d only, so that a long queue takes no longer than a short one. A +
after a number means "or more"; --json then has "atLeast": true.`, queue.MaxCount),
		Example: `  taskd queue size
  taskd queue size --queue mail --json | jq .ready`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				counts, err := db.Queue.Counts(ctx, name)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if asJSON {
					return term.JSON(out, struct {
						Size int64 `json:"size"`
						queue.Counts
						AtLeast bool `json:"atLeast"`
					}{counts.Size(), counts, counts.AtLeast()})
				}
				cells := []string{counted(counts.Size(), counts.AtLeast())}
				for _, n := range []int64{counts.Ready, counts.Delayed, counts.Reserved} {
					cells = append(cells, counted(n, n >= queue.MaxCount))
				}
				return term.Numbers(out, "size\tready\tdelayed\treserved", strings.Join(cells, "\t"))
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// counted returns n, with a + if there may be more.
func counted(n int64, atLeast bool) string {
	if atLeast {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}
