package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/queue"
)

// addFilterFlags adds the flags that choose dead letters.
func addFilterFlags(cmd *cobra.Command, f *queue.Filter) {
	flags := cmd.Flags()
	flags.Var((*label)(&f.Queue), "queue", "of this queue")
	flags.StringSliceVar(&f.Types, "type", nil, "of these job types, with commas")
	flags.StringSliceVar(&f.ErrorClasses, "error-class", nil, "of these error classes, with commas")
	for _, name := range []string{"type", "error-class"} {
		list := flags.Lookup(name)
		list.Value = storedTexts{list.Value}
	}
	flags.Var(moment{&f.Since}, "since", "died at this time or later: 2026-01-31T12:00:00Z, or 2h for two hours ago")
	flags.Var(moment{&f.Until}, "until", "died before this time")
	flags.Var(count{&f.Limit, 0, math.MaxInt}, "limit", "at most so many, the oldest first; 0: all")
}

func newFailed(at *target) *cobra.Command {
	var filter queue.Filter
	shown := listing[queue.FailedJob]{
		head: "id\tjob\tqueue\ttype\tattempts\tdied\terror",
		row: func(f queue.FailedJob) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", f.ID, f.Row, cell(f.Queue, 30), cell(f.Type, 40), f.Attempts,
				stamp(f.FailedAt), cell(f.Exception(), 100))
		},
	}
	cmd := &cobra.Command{
		Use:   "failed [ID]",
		Short: "Show the dead letters",
		Long: `Failed shows the jobs that could not be done, the oldest first: id is the dead letter's, which retry takes,
and job is what push printed. With an ID it shows all of one. With --json it is one array, or one object.`,
		Example: `  taskd queue failed --since 2h --type http
  taskd queue failed 3
  taskd queue failed --json | jq -r '.[].errorClass' | sort | uniq -c`,
		Args: maybeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				out := cmd.OutOrStdout()
				if len(args) == 0 {
					shown.limit = filter.Limit
					return shown.show(out, db.queue.Failed(ctx, filter))
				}
				letter, err := db.queue.FailedByID(ctx, args[0])
				if err != nil {
					return err
				}
				if shown.json {
					return writeJSON(out, letter)
				}
				printLetter(out, letter)
				return nil
			})
		},
	}
	addFilterFlags(cmd, &filter)
	cmd.Flags().BoolVar(&shown.json, "json", false, "print JSON")
	return cmd
}

// A replay is what the flags of retry say.
type replay struct {
	filter      queue.Filter
	all         bool
	yes, dryRun bool
}

func newRetry(at *target) *cobra.Command {
	var r replay
	cmd := &cobra.Command{
		Use:   "retry ID... | --all",
		Short: "Send dead letters again",
		Long: `Retry puts dead letters back into their queues, due at once, with all their attempts again and the ids
that their jobs had. An ID is a dead letter's, as "taskd queue failed" shows it; an unknown one is exit code 1.

--all takes all that the filters choose. When more than half of several have one error class, the fault may
still be there: then it asks first, or wants --yes. A letter whose unique key a live job has, or
which the database does not take (it has grown too large, say), stays dead and is named, with exit code 1. It can
be interrupted and run again.`,
		Example: `  taskd queue retry 3 4
  taskd queue retry --all --type http --since 2h --dry-run
  taskd queue retry --all --error-class '*main.exitError' --limit 1000 --rate 50 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd, args); err != nil {
				return err
			}
			return at.with(cmd, func(ctx context.Context, db *database) error {
				if !r.all {
					return retryEach(ctx, cmd, db, args)
				}
				return r.run(ctx, cmd, db)
			})
		},
	}
	addFilterFlags(cmd, &r.filter)
	cmd.Flags().BoolVar(&r.all, "all", false, "all that the filters choose")
	cmd.Flags().Float64Var(&r.filter.Rate, "rate", 0, "at most so many a second; 0: as fast as it goes")
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "only say how many there are")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	return cmd
}

func (r *replay) check(cmd *cobra.Command, args []string) error {
	if r.all == (len(args) > 0) {
		return usagef("want ids of dead letters, or --all")
	}
	for _, name := range []string{"queue", "type", "error-class", "since", "until", "limit", "rate", "dry-run"} {
		if !r.all && cmd.Flags().Changed(name) {
			return usagef("--%s needs --all", name)
		}
	}
	if rate := r.filter.Rate; !(rate >= 0) || math.IsInf(rate, 0) {
		return usagef("--rate %v: want a number of at least 0", rate)
	}
	return nil
}

func retryEach(ctx context.Context, cmd *cobra.Command, db *database, ids []string) error {
	var errs []error
	for _, id := range ids {
		if err := db.queue.Retry(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "dead letter %s is back in its queue\n", id)
	}
	return errors.Join(errs...)
}

func (r *replay) run(ctx context.Context, cmd *cobra.Command, db *database) error {
	classes, err := db.queue.CountFailed(ctx, r.filter)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if r.dryRun {
		for _, class := range slices.Sorted(maps.Keys(classes)) {
			fmt.Fprintf(out, "%d × %s\n", classes[class], cell(class, 100))
		}
		fmt.Fprintf(out, "%d dead letters would be sent again\n", limited(letters(classes), r.filter.Limit))
		return nil
	}
	if class, n := dominant(classes); n > 0 && !r.yes {
		question := fmt.Sprintf("%d of %d dead letters have the error %s, whose cause may still be there; send %d again",
			n, letters(classes), cell(class, 100), limited(letters(classes), r.filter.Limit))
		if err := confirm(ctx, cmd, question); err != nil {
			return err
		}
	}
	const quick = 100 // so many need no progress shown
	var bar *progress
	r.filter.Progress = func(done, of int) {
		if of <= quick && !(r.filter.Rate > 0) {
			return
		}
		if bar == nil {
			bar = newProgress(cmd.ErrOrStderr(), of)
		}
		for bar.done < done {
			bar.add("")
		}
	}
	n, err := db.queue.RetryAll(ctx, r.filter)
	if bar != nil {
		bar.end()
	}
	if err == nil || n > 0 {
		fmt.Fprintf(out, "%d dead letters are back in their queues\n", n)
	}
	return err
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

// dominant is the error class that more than half of several letters have; 0: none.
func dominant(classes map[string]int) (class string, n int) {
	total := letters(classes)
	for class, n := range classes {
		if total > 1 && 2*n > total {
			return class, n
		}
	}
	return "", 0
}

func newPrune(at *target) *cobra.Command {
	var name string
	var age time.Duration
	cmd := &cobra.Command{
		Use:   "prune --older-than DURATION",
		Short: "Remove old dead letters for good",
		Long: `Prune removes the dead letters that died longer ago than --older-than. Nothing else ever removes one,
but retry.`,
		Example: `  taskd queue prune --older-than 720h`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("want --older-than, such as 720h for thirty days")
			}
			return at.with(cmd, func(ctx context.Context, db *database) error {
				n, err := lasting(cmd.ErrOrStderr(), "removing dead letters", func() (int64, error) { return db.queue.Prune(ctx, name, age) })
				if err == nil || n > 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%d dead letters removed\n", n)
				}
				return err
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().Var(duration{&age, notNegative}, "older-than", "since its death")
	return cmd
}
