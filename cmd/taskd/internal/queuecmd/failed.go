package queuecmd

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/queue"
)

// addFilterFlags adds the flags that choose dead letters.
func addFilterFlags(cmd *cobra.Command, f *queue.Filter) {
	flags := cmd.Flags()
	flags.Var((*label)(&f.Queue), "queue", "only of this queue")
	flags.StringSliceVar(&f.Types, "type", nil, "only of these job types, separated by commas")
	flags.StringSliceVar(&f.ErrorClasses, "error-class", nil, "only of these error classes, separated by commas")
	for _, name := range []string{"type", "error-class"} {
		list := flags.Lookup(name)
		list.Value = storedTexts{list.Value}
	}
	flags.Var(moment{&f.Since}, "since", "died at this time or later: 2026-01-31T12:00:00Z, or 2h for two hours ago")
	flags.Var(moment{&f.Until}, "until", "died before this time")
	flags.Var(settings.Count{P: &f.Limit, Max: math.MaxInt}, "limit", "at most this many, the oldest first; 0: all")
}

func (c *commands) failed() *cobra.Command {
	var filter queue.Filter
	listing := term.Listing[queue.FailedJob]{
		Head: "id\tjob\tqueue\ttype\tattempts\tdied\terror",
		Row: func(f queue.FailedJob) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", f.ID, f.Row, term.Cell(f.Queue, 30),
				term.Cell(f.Type, 40), f.Attempts, term.Stamp(f.FailedAt), term.Cell(f.Exception(), 100))
		},
	}
	cmd := &cobra.Command{
		Use:   "failed [ID]",
		Short: "Show the dead letters",
		Long: `Failed shows the dead letters, the oldest first. The column id has the id of the dead letter, which
retry takes; the column job has the id that push printed. With an ID failed shows that dead letter
in full. --json prints one array, or with an ID one object.`,
		Example: `  taskd queue failed --since 2h --type http
  taskd queue failed 3
  taskd queue failed --json | jq -r '.[].errorClass' | sort | uniq -c`,
		Args: cli.Args(0, 1, "takes one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				out := cmd.OutOrStdout()
				if len(args) == 0 {
					listing.Limit = filter.Limit
					return listing.Show(out, db.Queue.Failed(ctx, filter))
				}
				letter, err := db.Queue.FailedByID(ctx, args[0])
				if err != nil {
					return err
				}
				if listing.JSON {
					return term.JSON(out, letter)
				}
				printLetter(out, letter)
				return nil
			})
		},
	}
	addFilterFlags(cmd, &filter)
	cmd.Flags().BoolVar(&listing.JSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) prune() *cobra.Command {
	var name string
	var age time.Duration
	cmd := &cobra.Command{
		Use:   "prune --older-than DURATION",
		Short: "Remove old dead letters for good",
		Long: `Prune removes the dead letters that died longer ago than --older-than. Only prune and retry remove
dead letters.`,
		Example: `  taskd queue prune --older-than 720h`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return cli.Usagef("want --older-than, such as 720h for thirty days")
			}
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				return remove(cmd, "dead letters", func() (int64, error) { return db.Queue.Prune(ctx, name, age) })
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().Var(settings.Duration{P: &age, Rule: settings.NotNegative}, "older-than", "time since the job died")
	return cmd
}
