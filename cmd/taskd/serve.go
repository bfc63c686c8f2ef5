package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
)

func newServe() *cobra.Command {
	var cfg task.Config
	var allowed patterns
	which := names(builtIn)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a pool until SIGTERM or SIGINT",
		Long: `Serve runs a pool with the built-in tasks until SIGTERM or SIGINT.

  echo    any value                        → the same value
  sleep   {"for": "1.5s"}                  → after that time, a text
  digest  {"path": FILE}                   → sha256, bytes, lines, compressed
  exec    {"argv": [COMMAND, ...],         → code, signal, stdout, stderr, truncated
           "stdin": "", "dir": "", "env": {}}

A relative path is taken from the folder that serve was started in. exec runs
only what an --allow-exec pattern matches, as a shell matches file names: a pattern with a
slash the command's absolute path, one without a slash a bare name. Of each output stream the first
256 KiB come back. The command's process group is killed when the task's context ends.

The first SIGTERM or SIGINT drains: running tasks finish, for at most
--drain-timeout, and the exit code is 0. The second one ends at once: what still
runs is killed and listed, and the exit code is 5. So it is when the time of a drain is up.`,
		Example: `  taskd serve
  taskd serve --name app --dir /run/app --workers 8 --drain-timeout 1m
  taskd serve --allow-exec git --allow-exec '/usr/bin/*'
  TASKD_WORKERS=8 TASKD_LOG=json taskd serve`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := defineTasks(which, allowed); err != nil {
				return err
			}
			if err := handOver(cmd.Flags()); err != nil {
				return err
			}
			if cfg.Env != nil {
				// The workers read the same flags and variables again.
				cfg.Env = append(cfg.Env, variables(cmd.Flags())...)
			}
			return serve(cmd.Context(), cmd.OutOrStdout(), cfg)
		},
	}
	addPoolFlags(cmd.Flags(), &cfg)
	add(cmd.Flags(), &which, "Tasks", "tasks", "built-in tasks that the pool has, with commas")
	add(cmd.Flags(), &allowed, "", "allow-exec", "commands that exec may run, with commas; may be repeated (default: none)")
	return cmd
}

// serve runs a pool to its end. Nothing before RunIfWorker may have an effect: each worker
// process comes the same way.
func serve(ctx context.Context, out io.Writer, cfg task.Config) error {
	task.RunIfWorker(cfg)
	pool, err := task.New(cfg)
	if err != nil {
		return err
	}
	first, second, stop := twoSignals(ctx)
	defer stop()
	if err := pool.Start(first); err != nil {
		return err
	}
	announce(out, pool.Config())
	<-first.Done()

	fmt.Fprintf(out, "draining, %d tasks run; a second signal ends at once\n", running(pool.Status()))
	if err := pool.Shutdown(second); err != nil {
		return &exitError{code: exitLost, err: err}
	}
	fmt.Fprintln(out, "drained")
	return nil
}

func announce(out io.Writer, cfg task.Config) {
	base := filepath.Join(cfg.TempDir, cfg.ServerName)
	fmt.Fprintf(out, "pool %s is ready: %s, %s at once in each\n", cfg.ServerName, plural(cfg.WorkerNum, "worker"), plural(cfg.MaxRunningNum, "task"))
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
