package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
)

const callHelp = `The task's arguments are one JSON value; - reads it from standard input, and
without it the task gets none. Whole numbers keep 64 bits.

The exit code says what is known of a failed call: 1 the task ran and failed,
3 it did not run and the call can be repeated, 4 it may have run.`

// A delivery is what the flags of call and async say.
type delivery struct {
	cfg        task.Config
	timeout    time.Duration
	wait       time.Duration
	soft, hard time.Duration
	meta       map[string]string
	cancel     bool
}

func (d *delivery) addFlags(cmd *cobra.Command, timeout time.Duration) {
	d.timeout = timeout
	flags := cmd.Flags()
	addTargetFlags(flags, &d.cfg)
	flags.Var(duration{&d.timeout, unlimited}, "timeout", "budget of the whole call; 0 or less: none")
	flags.Var(duration{&d.wait, notNegative}, "wait", "wait so long for a free slot; 0: a full pool is answered at once")
	flags.Var(duration{&d.soft, notNegative}, "soft-time-limit", "end the task's context after this; 0: as the pool says")
	flags.Var(duration{&d.hard, notNegative}, "time-limit", "kill the task's worker after this; 0: as the pool says")
	flags.StringToStringVar(&d.meta, "meta", nil, "meta data that goes with the task, `key=value`")
	flags.BoolVar(&d.cancel, "cancel", false, "end the task's context when this command ends")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return builtIn, cobra.ShellCompDirectiveNoFileComp
	}
}

func (d *delivery) options() []task.CallOption {
	options := []task.CallOption{task.WithTimeout(d.timeout)}
	if d.wait > 0 {
		options = append(options, task.WithWait(d.wait))
	}
	if d.soft > 0 || d.hard > 0 {
		options = append(options, task.WithTimeLimit(d.soft, d.hard))
	}
	if len(d.meta) > 0 {
		options = append(options, task.WithMeta(d.meta))
	}
	if d.cancel {
		options = append(options, task.WithCancel())
	}
	return options
}

func newCall() *cobra.Command {
	var d delivery
	cmd := &cobra.Command{
		Use:   "call TASK [JSON]",
		Short: "Run a task and print its result",
		Long:  "Call runs a task in a running pool and prints its result as a line of JSON.\n\n" + callHelp,
		Example: `  taskd call echo '{"n": 9223372036854775807}'
  taskd call digest '{"path": "/etc/hosts"}' --name app --dir /run/app
  taskd call exec '{"argv": ["git", "status"]}' --timeout 1m
  echo '[1, 2, 3]' | taskd call echo -`,
		Args: oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.deliver(cmd, args, func(ctx context.Context, client *task.Client, r task.Runner) error {
				result, err := client.Sync(ctx, r, d.options()...)
				if err != nil {
					return err
				}
				value, err := result.Value()
				if err != nil {
					return err
				}
				return encodeJSON(cmd.OutOrStdout(), value)
			})
		},
	}
	d.addFlags(cmd, 3*time.Second)
	return cmd
}

func newAsync() *cobra.Command {
	var d delivery
	cmd := &cobra.Command{
		Use:   "async TASK [JSON]",
		Short: "Have a task accepted and print its id",
		Long: `Async hands a task to a running pool and prints its id once a worker has accepted
it. Accepted is not done: how it ends is seen in "taskd status" and in the pool's log.

` + callHelp,
		Example: `  taskd async sleep '{"for": "10s"}'`,
		Args:    oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.deliver(cmd, args, func(ctx context.Context, client *task.Client, r task.Runner) error {
				id, err := client.Async(ctx, r, d.options()...)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), id)
				return nil
			})
		},
	}
	d.addFlags(cmd, 5*time.Second)
	return cmd
}

// deliver makes a task of the arguments, finds the pool, and calls send.
func (d *delivery) deliver(cmd *cobra.Command, args []string, send func(context.Context, *task.Client, task.Runner) error) error {
	var value any
	if len(args) == 2 {
		var in io.Reader = strings.NewReader(args[1])
		if args[1] == "-" {
			in = cmd.InOrStdin()
		}
		var err error
		if value, err = decodeJSON(in); err != nil {
			return usagef("the arguments are not JSON: %w", err)
		}
	}
	ctx, _, stop := twoSignals(cmd.Context())
	defer stop()
	client, err := dial(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	err = send(ctx, client, task.Named(args[0], value))
	return explain(args[0], err)
}

// dial finds a running pool.
func dial(ctx context.Context, cfg task.Config) (*task.Client, error) {
	client, err := task.Dial(ctx, cfg)
	var config *task.ConfigError
	if err != nil && !errors.As(err, &config) {
		err = &exitError{exitNotRun, err, "Is it running? Name and folder must be those of its taskd serve."}
	}
	return client, err
}

// explain says of a failed call what is known and what to do.
func explain(name string, err error) error {
	var failed *task.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &exitError{exitCode(err), fmt.Errorf("%s: %w", name, err), known(failed.Delivery) + " " + advice(failed)}
}

func known(d task.Delivery) string {
	switch d {
	case task.NotRun:
		return "The task did not run."
	case task.Ran:
		return "The task ran."
	default:
		return "The task may have run, or may still be running."
	}
}

func advice(failed *task.Error) string {
	switch failed.Status {
	case task.ErrProcessBusy:
		return "Try again, or let the call wait for a slot with --wait 5s."
	case task.ErrIllegalPackage:
		return "Check the task's name and arguments, and --tasks of taskd serve."
	case task.ErrPackageExpire:
		return "Try again with a longer --timeout."
	case task.ErrPackageTooLarge, task.ErrResponseTooLarge:
		return "Make it smaller, or start the pool with a larger --max-package-size."
	case task.ErrTask:
		return "What it says is its own error."
	case task.ErrProtocol:
		return "Are taskd and the pool of one version?"
	}
	if failed.Delivery == task.NotRun {
		return "Try again."
	}
	return "Look whether it did its work before you try again."
}
