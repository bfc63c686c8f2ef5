// Package poolcmd has the commands of a pool: serve runs one, and call, async and status talk to
// it.
package poolcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/internal/signals"
)

const callHelp = `JSON is one value, the task's arguments; - reads it from standard input. Without JSON the task
gets no arguments. Whole numbers of 64 bits stay exact.

Exit code 1 means that the task ran and failed, 3 that it did not run and repeating the call is
safe, 4 that it may have run.`

// A delivery is a call or an asynchronous call, as the flags describe it.
type delivery struct {
	cfg        task.Config
	timeout    time.Duration
	wait       time.Duration
	soft, hard time.Duration
	meta       map[string]string
	cancel     bool
}

func (d *delivery) addFlags(cmd *cobra.Command, timeout time.Duration, tasks []string) {
	d.timeout = timeout
	flags := cmd.Flags()
	addTargetFlags(flags, &d.cfg)
	duration := func(p *time.Duration, rule settings.Rule, name, usage string) {
		flags.Var(settings.Duration{P: p, Rule: rule}, name, usage)
	}
	duration(&d.timeout, settings.Unlimited, "timeout", "time limit of the whole call; 0 or less: none")
	duration(&d.wait, settings.NotNegative, "wait",
		"how long to wait for a free slot; 0: fail at once if the pool is full")
	duration(&d.soft, settings.NotNegative, "soft-time-limit",
		"end the task's context after this; 0: the pool's limit")
	duration(&d.hard, settings.NotNegative, "time-limit",
		"end the call and replace the task's worker after this; 0: the pool's limit")
	flags.StringToStringVar(&d.meta, "meta", nil, "metadata for the task, `key=value`; may be repeated")
	flags.BoolVar(&d.cancel, "cancel", false, "end the task's context when --timeout passes or this command ends")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return tasks, cobra.ShellCompDirectiveNoFileComp
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

// oneTask is the rule of the arguments of call and async.
var oneTask = cli.Args(1, 2, "needs TASK [JSON]")

// Call returns the command that runs a task and prints its result. A shell completes the names of
// tasks.
func Call(tasks []string) *cobra.Command {
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
	d.addFlags(cmd, 3*time.Second, tasks)
	return cmd
}

// Async returns the command that starts a task and prints its id. A shell completes the names of
// tasks.
func Async(tasks []string) *cobra.Command {
	var d delivery
	cmd := &cobra.Command{
		Use:   "async TASK [JSON]",
		Short: "Start a task and print its id",
		Long: `Async starts a task in a running pool, and prints the task's id when a worker has accepted it. It
does not wait for the task: "taskd status" counts how it ends, and the pool's log has its error.

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
	d.addFlags(cmd, 5*time.Second, tasks)
	return cmd
}

// deliver makes a task of the arguments, connects to the pool, and calls send.
func (d *delivery) deliver(cmd *cobra.Command, args []string,
	send func(context.Context, *task.Client, task.Runner) error) error {
	var value any
	if len(args) == 2 {
		var in io.Reader = strings.NewReader(args[1])
		if args[1] == "-" {
			in = cmd.InOrStdin()
		}
		var err error
		if value, err = decodeJSON(in); err != nil {
			return cli.Usagef("the arguments are not JSON: %w", err)
		}
	}
	ctx, _, stop := signals.Two(cmd.Context())
	defer stop()
	began := time.Now()
	d.cfg.PushTimeout = d.timeout // it bounds the dial
	if d.timeout == 0 {
		d.cfg.PushTimeout = -1
	}
	client, err := dial(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if d.timeout > 0 {
		d.timeout = max(d.timeout-time.Since(began), 1)
	}
	err = send(ctx, client, task.Named(args[0], value))
	return explain(args[0], err)
}

// dial connects to a running pool.
func dial(ctx context.Context, cfg task.Config) (*task.Client, error) {
	client, err := task.Dial(ctx, cfg)
	var config *task.ConfigError
	if err != nil && !errors.As(err, &config) {
		err = &cli.Error{
			Code: cli.ExitNotRun, Err: err,
			Advice: "Is it running? Name and folder must be those of its taskd serve.",
		}
	}
	return client, err
}

// explain adds to the error of a call what is known of the task, and advice.
func explain(name string, err error) error {
	var failed *task.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &cli.Error{
		Code: cli.ExitCode(err), Err: fmt.Errorf("%s: %w", name, err),
		Advice: known(failed.Delivery) + " " + advice(failed),
	}
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
		return "The message is the task's own error."
	case task.ErrProtocol:
		return "Are taskd and the pool of one version?"
	}
	if failed.Delivery == task.NotRun {
		return "Try again."
	}
	return "Check whether it did its work before you try again."
}
