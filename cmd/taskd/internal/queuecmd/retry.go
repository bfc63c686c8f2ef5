package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/queue"
)

// A replay is a run of the command retry with --all, as its flags describe it.
type replay struct {
	filter      queue.Filter
	all         bool
	yes, dryRun bool
}

func (c *commands) retry() *cobra.Command {
	var r replay
	cmd := &cobra.Command{
		Use:   "retry ID... | --all",
		Short: "Put dead letters back into their queues",
		Long: `Retry puts dead letters back into their queues. Their jobs keep their ids, are due at once and have
all attempts again. An ID is that of a dead letter, as "taskd queue failed" shows it. An unknown ID
causes exit code 1.

With --all retry takes all dead letters that the filters select. If more than half of several have
the same error class, its cause may still be there: then retry asks first, or needs --yes. A letter
stays dead if a live job has its unique key, or if the database refuses the job, for example
because it is too large. Retry then names the letter, and the exit code is 1. Retry can be
interrupted and run again.`,
		Example: `  taskd queue retry 3 4
  taskd queue retry --all --type http --since 2h --dry-run
  taskd queue retry --all --error-class '*builtin.ExitError' --limit 1000 --rate 50 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd, args); err != nil {
				return err
			}
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				if !r.all {
					return retryEach(ctx, cmd.OutOrStdout(), db.Queue, args)
				}
				return r.run(ctx, cmd, db.Queue)
			})
		},
	}
	addFilterFlags(cmd, &r.filter)
	cmd.Flags().BoolVar(&r.all, "all", false, "all dead letters that the filters select")
	cmd.Flags().Float64Var(&r.filter.Rate, "rate", 0, "at most this many a second; 0: no limit")
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "count the letters, and send none")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	return cmd
}

func (r *replay) check(cmd *cobra.Command, args []string) error {
	if r.all == (len(args) > 0) {
		return cli.Usagef("want ids of dead letters, or --all")
	}
	for _, name := range []string{"queue", "type", "error-class", "since", "until", "limit", "rate", "dry-run"} {
		if !r.all && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s needs --all", name)
		}
	}
	if rate := r.filter.Rate; !(rate >= 0) || math.IsInf(rate, 0) {
		return cli.Usagef("--rate %v: want a number of at least 0", rate)
	}
	return nil
}

func retryEach(ctx context.Context, out io.Writer, q *queue.Queue, ids []string) error {
	var errs []error
	for _, id := range ids {
		if err := q.Retry(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(out, "dead letter %s is back in its queue\n", id)
	}
	return errors.Join(errs...)
}

func (r *replay) run(ctx context.Context, cmd *cobra.Command, q *queue.Queue) error {
	classes, err := q.CountFailed(ctx, r.filter)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if r.dryRun {
		for _, class := range slices.Sorted(maps.Keys(classes)) {
			fmt.Fprintf(out, "%d × %s\n", classes[class], term.Cell(class, 100))
		}
		fmt.Fprintf(out, "%d dead letters would be sent again\n", limited(letters(classes), r.filter.Limit))
		return nil
	}
	if class, n := dominant(classes); n > 0 && !r.yes {
		total := letters(classes)
		question := fmt.Sprintf(
			"%d of %d dead letters have the error %s, whose cause may still be there; send %d again",
			n, total, term.Cell(class, 100), limited(total, r.filter.Limit))
		if err := confirm(ctx, cmd, question); err != nil {
			return err
		}
	}
	end := r.showProgress(cmd.ErrOrStderr())
	n, err := q.RetryAll(ctx, r.filter)
	end()
	if err == nil || n > 0 {
		fmt.Fprintf(out, "%d dead letters are back in their queues\n", n)
	}
	return err
}

// showProgress shows the progress of a replay that takes long: one of many letters, or one with a
// rate.
func (r *replay) showProgress(out io.Writer) (end func()) {
	const few = 100
	var bar *term.Progress
	r.filter.Progress = func(done, of int) {
		if of <= few && !(r.filter.Rate > 0) {
			return
		}
		if bar == nil {
			bar = term.NewProgress(out, of)
		}
		bar.To(done)
	}
	return func() {
		if bar != nil {
			bar.End()
		}
	}
}

func letters(classes map[string]int) (total int) {
	for _, n := range classes {
		total += n
	}
	return total
}

func limited(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// dominant returns the error class that more than half of several letters have, and how many; 0 if
// there is none.
func dominant(classes map[string]int) (class string, n int) {
	total := letters(classes)
	for class, n := range classes {
		if total > 1 && 2*n > total {
			return class, n
		}
	}
	return "", 0
}
