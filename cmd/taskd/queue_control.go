package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newClear(at *target) *cobra.Command {
	var name string
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Remove the jobs that no worker has",
		Long: `Clear removes the jobs of a queue, or of all, that are ready or delayed. What runs goes on, and dead
letters stay. On a terminal it asks first; elsewhere it wants --yes.`,
		Example: `  taskd queue clear --queue mail --yes`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if !yes {
					counts, err := db.queue.Counts(ctx, name)
					if err != nil {
						return err
					}
					question := fmt.Sprintf("remove %s jobs of %s", counted(counts.Ready+counts.Delayed, counts.AtLeast()), everyQueue(name))
					if err := confirm(ctx, cmd, question); err != nil {
						return err
					}
				}
				n, err := lasting(cmd.ErrOrStderr(), "removing jobs", func() (int64, error) { return db.queue.Clear(ctx, name) })
				if err == nil || n > 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%d jobs removed\n", n)
				}
				return err
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func newPause(at *target) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Keep workers from taking jobs",
		Long: `Pause keeps all workers from taking jobs of a queue, or of any, within a second. What runs goes on,
and pushes are stored. It holds, also for workers that start later, until "taskd queue resume".`,
		Example: `  taskd queue pause --queue mail`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if err := db.queue.Pause(ctx, name); err != nil {
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

func newResume(at *target) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause",
		Long: `Resume ends a pause. One of every queue and one of a single queue are two: each is ended by the
same words that began it. Without a pause nothing happens.`,
		Example: `  taskd queue resume --queue mail`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if err := db.queue.Resume(ctx, name); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: resumed\n", everyQueue(name))
				paused, err := db.queue.Paused(ctx)
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

func newRestart(at *target) *cobra.Command {
	return &cobra.Command{
		Use:   "restart",
		Short: "Let all workers of the database finish and exit",
		Long: fmt.Sprintf(`Restart makes every worker of the database that runs now take no more jobs, finish what it has, and
exit with code %d, so that whoever starts it again gets it with new code.`, exitRestart),
		Example: `  taskd queue restart`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if err := db.queue.Restart(ctx); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "the workers are told")
				return nil
			})
		},
	}
}

func newCancel(at *target) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Remove a job, also one that runs",
		Long: `Cancel removes a job by the id that push printed. One that runs is stopped within a second or two,
and whatever it answers counts for nothing. An id that no live job has is exit code 1.`,
		Example: `  taskd queue cancel 17`,
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if err := db.queue.Cancel(ctx, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "job %s is cancelled\n", args[0])
				return nil
			})
		},
	}
}
