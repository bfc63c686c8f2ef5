package queuecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// maxPayload is how many bytes push reads. Databases have their own limits; MariaDB's is 16 MiB.
const maxPayload = 64 << 20

// A pushing is a job to push, as the flags describe it.
type pushing struct {
	queue                   string
	delay, backoff, timeout time.Duration
	tries, priority         int
	unique                  string
	json                    bool
}

func (c *commands) push() *cobra.Command {
	p := pushing{queue: job.DefaultQueue, tries: 5, priority: 1}
	cmd := &cobra.Command{
		Use:   "push TYPE [JSON]",
		Short: "Put a job into a queue and print its id",
		Long: `Push stores a job. JSON is the payload, one object or array; - reads it from standard input. Without
JSON it is {}. Push accepts any type, but a worker must know it.

A failed job is retried after a growing delay, or after --backoff, until it has run --tries times.
Then it becomes a dead letter.

With --unique only one job of its type has the key, from its push until it is done, cancelled or
dead. Until then another push with the key names that job and fails with exit code 1.`,
		Example: `  taskd queue push exec '{"argv": ["backup", "/srv"]}' --tries 3 --backoff 1m --timeout 1h
  taskd queue push http '{"url": "https://example.org/hook", "body": {"n": 1}}'
  echo '{"argv": ["make"]}' | taskd queue push exec - --delay 10m --unique build
  taskd queue push http '{"url": "https://example.org/alarm"}' --priority urgent`,
		Args: cli.Args(1, 2, "needs TYPE [JSON]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.settings.DefaultQueue(cmd.Flags().Lookup("queue")); err != nil {
				return err
			}
			envelope, err := envelope(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			return c.with(cmd, func(ctx context.Context, db *database.DB) error {
				id, err := db.Queue.PushEnvelope(ctx, envelope, p.options(cmd)...)
				if err != nil {
					return err
				}
				if p.json {
					return term.JSON(cmd.OutOrStdout(), map[string]string{"id": id})
				}
				fmt.Fprintln(cmd.OutOrStdout(), id)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.Var((*label)(&p.queue), "queue", "queue of the job; QUEUE_NAME overrides the default")
	flags.Var(settings.Duration{P: &p.delay, Rule: anyDelay}, "delay",
		"time before the first run; less than 0 counts as 0")
	flags.Var((*priority)(&p.priority), "priority",
		"low, normal, high or urgent, or 0 to 3; in a queue, higher ones run first")
	flags.Var(settings.Count{P: &p.tries, Min: 1, Max: math.MaxInt32}, "tries", "how many times the job may run")
	flags.Var(settings.Duration{P: &p.backoff, Rule: settings.NotNegative}, "backoff",
		"wait after each failure (default: the worker's growing delay)")
	flags.Var(settings.Duration{P: &p.timeout, Rule: settings.Positive}, "timeout",
		"time limit of each run (default: the worker's)")
	flags.Var((*label)(&p.unique), "unique", "key that no other live job of this type has")
	flags.BoolVar(&p.json, "json", false, "print JSON")
	return cmd
}

func anyDelay(time.Duration) (bool, string) { return true, "of any sign" }

// envelope returns the job of the arguments.
func envelope(in io.Reader, args []string) (job.Envelope, error) {
	payload := []byte("{}")
	if len(args) == 2 {
		payload = []byte(args[1])
		if args[1] == "-" {
			var err error
			if payload, err = io.ReadAll(io.LimitReader(in, maxPayload+1)); err != nil {
				return job.Envelope{}, err
			}
			if len(payload) > maxPayload {
				return job.Envelope{}, cli.Usagef("the payload: want at most %d bytes", maxPayload)
			}
		}
	}
	if !json.Valid(payload) {
		return job.Envelope{}, cli.Usagef("the payload is not JSON")
	}
	e, err := job.New(args[0], json.RawMessage(payload), nil, job.DefaultRetryPolicy())
	if err != nil {
		return e, cli.Usagef("%w", err)
	}
	return e, nil
}

func (p *pushing) options(cmd *cobra.Command) []queue.PushOption {
	options := []queue.PushOption{
		queue.On(p.queue), queue.Delay(p.delay), queue.Timeout(p.timeout), queue.Priority(p.priority),
	}
	if cmd.Flags().Changed("tries") {
		options = append(options, queue.Tries(p.tries))
	}
	if cmd.Flags().Changed("backoff") {
		options = append(options, queue.Backoff(p.backoff))
	}
	if p.unique != "" {
		options = append(options, queue.Unique(p.unique, queue.TakenReject))
	}
	return options
}
