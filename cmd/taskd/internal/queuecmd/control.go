package queuecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
)

func (c *commands) clear() *cobra.Command {
	var name string
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Remove the jobs that no worker has",
		Long: `Clear removes the ready and delayed jobs of one queue or of all. Running jobs go on, and dead
letters stay. On a terminal clear asks first; elsewhere it needs --yes.`,
		Example: `  taskd queue clear --queue mail --yes`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if !yes {
					counts, err := db.Queue.Counts(ctx, name)
					if err != nil {
						return err
					}
					n := counted(counts.Ready+counts.Delayed, counts.AtLeast())
					if err := confirm(ctx, cmd, fmt.Sprintf("remove %s jobs of %s", n, everyQueue(name))); err != nil {
						return err
					}
				}
				return remove(cmd, "jobs", func() (int64, error) { return db.Queue.Clear(ctx, name) })
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks on a terminal. Elsewhere the command needs --yes.
func confirm(ctx context.Context, cmd *cobra.Command, question string) error {
	err := term.Confirm(ctx, cmd.InOrStdin(), cmd.ErrOrStderr(), question)
	if errors.Is(err, term.ErrNoTerminal) {
		return cli.Usagef("%w", err)
	}
	return err
}

// remove runs fn and reports how many it removed, also before an error.
func remove(cmd *cobra.Command, what string, fn func() (int64, error)) error {
	n, err := term.Elapsed(cmd.ErrOrStderr(), "removing "+what, fn)
	if err == nil || n > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%d %s removed\n", n, what)
	}
	return err
}

func (c *commands) pause() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Keep workers from taking jobs",
		Long: `Pause stops all workers, within a second, from taking jobs of one queue or of all. Running jobs go
on, and push still stores jobs. The pause lasts until "taskd queue resume", also for workers that
start later.`,
		Example: `  taskd queue pause --queue mail`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if err := db.Queue.Pause(ctx, name); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: paused\n", everyQueue(name))
				return nil
			})
		},
	}
	addQueueFlag(cmd, &name)
	return cmd
}

func (c *commands) resume() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause",
		Long: `Resume ends a pause. A pause of every queue and a pause of one queue are independent: end each as
it began, without or with --queue. Without a pause, resume does nothing.`,
		Example: `  taskd queue resume --queue mail`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if err := db.Queue.Resume(ctx, name); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: resumed\n", everyQueue(name))
				paused, err := db.Queue.Paused(ctx)
				for _, other := range paused {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: still paused\n", everyQueue(other))
				}
				return err
			})
		},
	}
	addQueueFlag(cmd, &name)
	return cmd
}

func (c *commands) restart() *cobra.Command {
	return &cobra.Command{
		Use:   "restart",
		Short: "Ask all workers to finish their jobs and exit",
		Long: fmt.Sprintf(`Restart asks all workers that now run on the database to take no more jobs, to finish
those that they have, and to exit with code %d. A service manager then starts the new program.`, cli.ExitRestart),
		Example: `  taskd queue restart`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if err := db.Queue.Restart(ctx); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "restart requested")
				return nil
			})
		},
	}
}

func (c *commands) cancel() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Remove a job, even a running one",
		Long: `Cancel removes a job by the id that push printed. A running job is stopped within a second or two,
and its result is ignored. If no live job has the id, the exit code is 1.`,
		Example: `  taskd queue cancel 17`,
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if err := db.Queue.Cancel(ctx, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "job %s is cancelled\n", args[0])
				return nil
			})
		},
	}
}
