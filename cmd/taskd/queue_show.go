package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

func newSize(at *target) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "size",
		Short: "Count the jobs",
		Long: `Size counts the jobs of a queue, or of all: ready ones are due, delayed ones are not yet, reserved
ones are with a worker or were left by one that is gone. size is their sum. Dead letters are none of them.

Each state is counted up to ` + fmt.Sprint(queue.MaxCount) + `, so that a deep queue costs no more to look at than a short one. A number with
a + behind it is at least that; with --json atLeast is true then.`,
		Example: `  taskd queue size
  taskd queue size --queue mail --json | jq .ready`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				counts, err := db.queue.Counts(ctx, name)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if asJSON {
					return writeJSON(out, struct {
						Size int64 `json:"size"`
						queue.Counts
						AtLeast bool `json:"atLeast"`
					}{counts.Size(), counts, counts.AtLeast()})
				}
				w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
				fmt.Fprintln(w, "size\tready\tdelayed\treserved\t")
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", counted(counts.Size(), counts.AtLeast()), counted(counts.Ready, counts.Ready >= queue.MaxCount),
					counted(counts.Delayed, counts.Delayed >= queue.MaxCount), counted(counts.Reserved, counts.Reserved >= queue.MaxCount))
				return w.Flush()
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// counted is a number, with a + behind it when there may be more.
func counted(n int64, atLeast bool) string {
	if atLeast {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

func addQueueFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().Var((*label)(name), "queue", "one queue (default: every queue)")
}

func newList(at *target) *cobra.Command {
	var name string
	shown := listing[queue.JobInfo]{
		head: "id\tqueue\tstate\ttype\tpriority\tattempts\tdue\tworker",
		row: func(j queue.JobInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d/%s\t%s\t%s", j.ID, cell(j.Queue, 30), j.State, cell(j.Type, 40), j.Priority,
				j.Attempts, tries(j.MaxAttempts), stamp(j.AvailableAt), cell(j.ReservedBy, 80))
		},
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the jobs",
		Long: `List shows the jobs that wait, are delayed or run, in the order of their ids. attempts are those
begun of those allowed. With --json it is one array, in which backoff and timeout are nanoseconds.`,
		Example: `  taskd queue list --queue mail --limit 20
  taskd queue list --json | jq '.[] | select(.state == "reserved")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				return shown.show(cmd.OutOrStdout(), db.queue.List(ctx, name))
			})
		},
	}
	addQueueFlag(cmd, &name)
	cmd.Flags().Var(count{&shown.limit, 0, math.MaxInt}, "limit", "at most so many; 0: all")
	cmd.Flags().BoolVar(&shown.json, "json", false, "print JSON")
	return cmd
}

func tries(n int) string {
	if n >= job.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func newInspect(at *target) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect ID",
		Short: "Show what is known of a job",
		Long: `Inspect shows a job by the id that push printed, its failed attempts, and the dead letters that it
left. A job that is done has left nothing: the exit code is 1 then, as for an id that never was.`,
		Example: `  taskd queue inspect 17
  taskd queue inspect 17 --json | jq .job.failures`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, func(ctx context.Context, db *database) error {
				record, err := db.queue.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), record)
				}
				printRecord(cmd.OutOrStdout(), record)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printRecord(out io.Writer, r queue.Record) {
	if j := r.Job; j != nil {
		fact(out, "job", j.ID)
		fact(out, "state", j.State)
		fact(out, "queue", j.Queue)
		fact(out, "type", j.Type)
		fact(out, "job id", j.JobID)
		fact(out, "attempts", fmt.Sprintf("%d of %s", j.Attempts, tries(j.MaxAttempts)))
		fact(out, "crashes", fmt.Sprint(j.Crashes))
		fact(out, "replays", fmt.Sprint(j.Replays))
		fact(out, "pushed", stamp(j.CreatedAt))
		fact(out, "due", stamp(j.AvailableAt))
		if j.ReservedBy != "" {
			fact(out, "worker", j.ReservedBy)
			fact(out, "lease", stamp(j.ReservedAt)+" to "+stamp(j.LeaseUntil))
		}
		fact(out, "unique key", j.UniqueKey)
		fact(out, "payload", string(j.Envelope.Payload)+j.Raw)
		fact(out, "broken", j.Broken)
		printAttempts(out, j.Failures)
	}
	for i, f := range r.Dead {
		if i > 0 || r.Job != nil {
			fmt.Fprintln(out)
		}
		printLetter(out, f)
	}
}

func printLetter(out io.Writer, f queue.FailedJob) {
	fact(out, "dead letter", f.ID)
	fact(out, "job", f.Row)
	fact(out, "queue", f.Queue)
	fact(out, "type", f.Type)
	fact(out, "job id", f.JobID)
	fact(out, "error", f.Exception())
	fact(out, "reason", string(f.Reason))
	fact(out, "attempts", fmt.Sprint(f.Attempts))
	fact(out, "crashes", fmt.Sprint(f.Crashes))
	fact(out, "replays", fmt.Sprint(f.Replays))
	fact(out, "pushed", stamp(f.CreatedAt))
	fact(out, "died", stamp(f.FailedAt))
	fact(out, "buried by", f.FailedBy)
	fact(out, "payload", f.Payload)
	printAttempts(out, f.History)
}

// fact prints a line unless there is nothing to say.
func fact(out io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(out, "%-12s %s\n", name, cell(value, 4000))
	}
}

func printAttempts(out io.Writer, failed []job.AttemptError) {
	for _, a := range failed {
		fact(out, fmt.Sprintf("attempt %d", a.Attempt), fmt.Sprintf("%s %s: %s", stamp(time.Unix(a.At, 0)), a.Reason, a.Error))
	}
}

// A moment is a point in time: RFC 3339, or a time span before now.
type moment struct{ p *time.Time }

func (m moment) Set(s string) error {
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		*m.p = time.Now().Add(-ago)
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("want a time such as 2026-01-31T12:00:00Z, or 2h for two hours ago")
	}
	*m.p = t
	return nil
}

func (m moment) String() string {
	if m.p == nil || m.p.IsZero() {
		return ""
	}
	return m.p.Format(time.RFC3339)
}
func (moment) Type() string { return "time" }
