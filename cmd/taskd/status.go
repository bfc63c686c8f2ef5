package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
)

func newStatus() *cobra.Command {
	var cfg task.Config
	var asJSON, watch bool
	every := time.Second
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a pool's workers",
		Long: `Status prints a row per worker of a running pool. During a replacement an index has two
rows. With --json it is one JSON array, with --watch it is repeated until Ctrl-C.

Whenever the pool is still, accepted = success + fail + lost + running.`,
		Example: `  taskd status
  taskd status --watch --every 500ms
  taskd status --json | jq '.[].running'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, _, stop := twoSignals(cmd.Context())
			defer stop()
			client, err := dial(ctx, cfg)
			if err != nil {
				return err
			}
			defer client.Close()
			show := printRows
			if asJSON {
				show = printJSON
			}
			if !watch {
				return show(cmd.OutOrStdout(), client.Status())
			}
			return repeat(ctx, cmd.OutOrStdout(), every, func(w io.Writer) error { return show(w, client.Status()) })
		},
	}
	addTargetFlags(cmd.Flags(), &cfg)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat until Ctrl-C")
	cmd.Flags().Var(duration{&every, positive}, "every", "time between two looks of --watch")
	return cmd
}

// repeat calls show until ctx ends; on a terminal each picture replaces the one before.
func repeat(ctx context.Context, out io.Writer, every time.Duration, show func(io.Writer) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if terminal(out) > 0 {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if err := show(out); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func printRows(out io.Writer, rows []task.WorkerStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "worker\tpid\tstate\trunning\taccepted\tsuccess\tfail\tlost\texpired\tbusy\trestarts\tup\t")
	for _, row := range rows {
		fmt.Fprintf(w, "%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n",
			row.Index, row.PID, state(row), row.Running, row.Accepted, row.Success, row.Fail,
			row.Lost, row.Expired, row.Busy, row.Restarts, uptime(row))
	}
	return w.Flush()
}

func state(row task.WorkerStatus) string {
	switch {
	case row.Degraded:
		return "degraded"
	case row.PID == 0:
		return "restarting"
	case row.Accepting:
		return "accepting"
	default:
		return "draining"
	}
}

func uptime(row task.WorkerStatus) string {
	if row.PID == 0 {
		return "-"
	}
	return time.Since(row.StartUpTime).Round(time.Second).String()
}

// A statusRow is a worker as --json shows it.
type statusRow struct {
	Index       int       `json:"index"`
	PID         int       `json:"pid"`
	Accepting   bool      `json:"accepting"`
	Running     int       `json:"running"`
	Accepted    uint64    `json:"accepted"`
	Success     uint64    `json:"success"`
	Fail        uint64    `json:"fail"`
	Lost        uint64    `json:"lost"`
	Expired     uint64    `json:"expired"`
	Busy        uint64    `json:"busy"`
	Restarts    uint64    `json:"restarts"`
	Generation  uint64    `json:"generation"`
	Degraded    bool      `json:"degraded"`
	StartUpTime time.Time `json:"startUpTime"`
}

func printJSON(out io.Writer, rows []task.WorkerStatus) error {
	shown := make([]statusRow, len(rows))
	for i, r := range rows {
		shown[i] = statusRow{
			Index: r.Index, PID: r.PID, Accepting: r.Accepting, Running: r.Running,
			Accepted: r.Accepted, Success: r.Success, Fail: r.Fail, Lost: r.Lost, Expired: r.Expired, Busy: r.Busy,
			Restarts: r.Restarts, Generation: r.Generation, Degraded: r.Degraded, StartUpTime: r.StartUpTime,
		}
	}
	return json.NewEncoder(out).Encode(shown)
}
