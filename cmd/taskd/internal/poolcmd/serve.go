package poolcmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/internal/signals"
)

// Tasks are the tasks of a pool that Serve runs.
type Tasks interface {
	// Help describes the tasks in the help of the command.
	Help() string
	// AddFlags adds the flags that choose and limit the tasks.
	AddFlags(*pflag.FlagSet)
	// Define registers the tasks. Serve calls it once, in the parent and in each worker process.
	Define() error
}

// Serve returns the command that runs a pool of tasks.
func Serve(r *settings.Reader, tasks Tasks) *cobra.Command {
	var cfg task.Config
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a pool until SIGTERM or SIGINT",
		Long: `Serve runs a pool with the built-in tasks until SIGTERM or SIGINT.

` + tasks.Help() + `

At the first SIGTERM or SIGINT the pool drains: it accepts no more tasks, running ones have
--drain-timeout to finish, and the exit code is 0. At the second signal, or at the end of
--drain-timeout, serve kills and lists the tasks that still run, and the exit code is 5.`,
		Example: `  taskd serve
  taskd serve --name app --dir /run/app --workers 8 --drain-timeout 1m
  taskd serve --allow-exec git --allow-exec '/usr/bin/*'
  TASKD_WORKERS=8 TASKD_LOG=json taskd serve`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := tasks.Define(); err != nil {
				return err
			}
			if err := r.HandOver(); err != nil {
				return err
			}
			if cfg.Env != nil {
				// The workers read the same flags and variables again.
				cfg.Env = append(cfg.Env, settings.Variables(cmd.Flags())...)
			}
			return serve(cmd.Context(), cmd.OutOrStdout(), cfg)
		},
	}
	addPoolFlags(cmd.Flags(), &cfg)
	tasks.AddFlags(cmd.Flags())
	return cmd
}

// serve runs a pool to its end. A worker process runs the same code up to RunIfWorker, so nothing
// before that may have an effect.
func serve(ctx context.Context, out io.Writer, cfg task.Config) error {
	task.RunIfWorker(cfg)
	pool, err := task.New(cfg)
	if err != nil {
		return err
	}
	first, second, stop := signals.Two(ctx)
	defer stop()
	if err := pool.Start(first); err != nil {
		return err
	}
	announce(out, pool.Config())
	<-first.Done()

	fmt.Fprintf(out, "draining, %d tasks run; a second signal ends at once\n", running(pool.Status()))
	if err := pool.Shutdown(second); err != nil {
		return &cli.Error{Code: cli.ExitLost, Err: err}
	}
	fmt.Fprintln(out, "drained")
	return nil
}

func announce(out io.Writer, cfg task.Config) {
	base := filepath.Join(cfg.TempDir, cfg.ServerName)
	fmt.Fprintf(out, "pool %s is ready: %s, %s at once in each\n",
		cfg.ServerName, cli.Plural(cfg.WorkerNum, "worker"), cli.Plural(cfg.MaxRunningNum, "task"))
	fmt.Fprintf(out, "sockets: %s.TaskWorker.0.sock to %d.sock, control: %s.Pool.sock\n", base, cfg.WorkerNum-1, base)
	fmt.Fprintf(out, "try: taskd call echo '{\"hello\": \"world\"}' --name %s --dir %s\n", cfg.ServerName, cfg.TempDir)
}

func running(rows []task.WorkerStatus) int {
	n := 0
	for _, row := range rows {
		n += row.Running
	}
	return n
}
