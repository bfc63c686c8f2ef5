package queuecmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

func (c *commands) inspect() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect ID",
		Short: "Show everything about a job",
		Long: `Inspect shows a job by the id that push printed, its failed attempts, and the dead letters that it
left. A job that is done leaves nothing: the exit code is 1, as for an unknown id.`,
		Example: `  taskd queue inspect 17
  taskd queue inspect 17 --json | jq .job.failures`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				record, err := db.Queue.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return term.JSON(cmd.OutOrStdout(), record)
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
		fact(out, "pushed", term.Stamp(j.CreatedAt))
		fact(out, "due", term.Stamp(j.AvailableAt))
		if j.ReservedBy != "" {
			fact(out, "worker", j.ReservedBy)
			fact(out, "lease", term.Stamp(j.ReservedAt)+" to "+term.Stamp(j.LeaseUntil))
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
	fact(out, "pushed", term.Stamp(f.CreatedAt))
	fact(out, "died", term.Stamp(f.FailedAt))
	fact(out, "failed by", f.FailedBy)
	fact(out, "payload", f.Payload)
	printAttempts(out, f.History)
}

// fact prints a line unless value is empty.
func fact(out io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(out, "%-12s %s\n", name, term.Cell(value, 4000))
	}
}

func printAttempts(out io.Writer, failed []job.AttemptError) {
	for _, a := range failed {
		fact(out, fmt.Sprintf("attempt %d", a.Attempt),
			fmt.Sprintf("%s %s: %s", term.Stamp(time.Unix(a.At, 0)), a.Reason, a.Error))
	}
}
