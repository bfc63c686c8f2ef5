package main

import (
	"github.com/spf13/cobra"
)

const rootHelp = `taskd runs tasks in a pool of worker processes that heals itself.

A pool is one "taskd serve" and its workers. The other commands find it by its
name and its folder, which are given alike to both sides:

  taskd serve --name app --dir /run/app &
  taskd call echo '{"hello": "world"}' --name app --dir /run/app

Flags that set up a pool or find one, and --allow-exec and the queue's --dsn and tables, can
also stand in the environment: --name is TASKD_NAME, --drain-timeout is
TASKD_DRAIN_TIMEOUT, and so on. Or they stand in a file, in TOML, under their names:

  name = "app"
  workers = 8
  drain-timeout = "1m"
  allow-exec = ["git", "/usr/local/bin/*"]
  dsn = "postgres://user:password@host/database"

The file is --config or TASKD_CONFIG; otherwise $XDG_CONFIG_HOME/taskd/config.toml
(~/.config/taskd/config.toml), or where that is missing /etc/taskd.toml. A flag goes before its
variable, that before the file, and the file before the default.

Exit codes:
  0    done; serve: drained
  1    failed, standard error says why; call: the task ran and failed
  2    wrong flags, arguments, environment or config file; nothing was started
  3    call, async: the task did not run, it is safe to repeat
  4    call, async: the task may have run
  5    serve, queue work: ended before the drain was complete, what was lost is listed
  6    queue work: a restart was asked for
  130  interrupted before the end`

// refuseUnknownShells makes completion refuse what is no shell that it knows: by itself it prints its help
// and reports success. root must have its output by then, which the commands of the shells keep.
func refuseUnknownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				return usagef("completion needs a shell, bash, zsh, fish or powershell; see %s --help", cmd.CommandPath())
			}
		}
	}
}

// newRoot makes the command line. started turns true when flags, environment
// and arguments are found good and the command begins.
func newRoot() (root *cobra.Command, started *bool) {
	started = new(bool)
	var file configFile
	root = &cobra.Command{
		Use:   "taskd",
		Short: "Run tasks in a pool of worker processes",
		Long:  rootHelp,
		Example: `  taskd serve --workers 8         run a pool until SIGTERM
  taskd status --watch            look at it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := readEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := file.read(cmd); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	file.addFlag(root.PersistentFlags())
	root.AddCommand(newServe(), newCall(), newAsync(), newStatus(), newQueue(&file), newGuard())
	return root, started
}
