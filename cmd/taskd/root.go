package main

import (
	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/builtin"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/poolcmd"
	"github.com/taskd-go/task/cmd/taskd/internal/queuecmd"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
)

const rootHelp = `taskd runs tasks in a pool of worker processes that heals itself.

A pool is one "taskd serve" and its workers. The other commands find it by its name and folder.
Give both sides the same:

  taskd serve --name app --dir /run/app &
  taskd call echo '{"hello": "world"}' --name app --dir /run/app

Flags that set up or find a pool, --allow-exec, and the queue's --dsn and tables can also stand in
the environment: --name is TASKD_NAME, --drain-timeout is TASKD_DRAIN_TIMEOUT, and so on. Or they
stand in a TOML file under their names:

  name = "app"
  workers = 8
  drain-timeout = "1m"
  allow-exec = ["git", "/usr/local/bin/*"]
  dsn = "postgres://user:password@host/database"

The file is --config or TASKD_CONFIG; otherwise $XDG_CONFIG_HOME/taskd/config.toml
(~/.config/taskd/config.toml), or if that is missing /etc/taskd.toml. A flag overrides its
environment variable, the variable overrides the file, and the file overrides the default.

Exit codes:
  0    done; serve: drained
  1    failed, standard error says why; call: the task ran and failed
  2    wrong flags, arguments, environment or config file; nothing was started
  3    call, async: the task did not run, it is safe to repeat
  4    call, async: the task may have run
  5    serve, queue work: ended before the drain was complete; lost tasks and jobs are listed
  6    queue work: restart requested
  130  interrupted before the end`

// A command is the command line.
type command struct {
	root     *cobra.Command
	settings *settings.Reader
	started  bool // flags, environment, file and arguments are valid, and the command runs
}

func newCommand() *command {
	r := &settings.Reader{}
	c := &command{settings: r}
	c.root = &cobra.Command{
		Use:   "taskd",
		Short: "Run tasks in a pool of worker processes",
		Long:  rootHelp,
		Example: `  taskd serve --workers 8         run a pool until SIGTERM
  taskd status --watch            look at it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := r.Read(cmd)
			c.started = err == nil
			return err
		},
	}
	r.AddFlag(c.root.PersistentFlags())
	tasks := builtin.TaskNames()
	c.root.AddCommand(
		poolcmd.Serve(r, builtin.NewTasks()), poolcmd.Call(tasks), poolcmd.Async(tasks), poolcmd.Status(),
		queuecmd.New(database.NewTarget(r), r, &builtin.Jobs{}), builtin.Guard(),
	)
	return c
}

// refuseUnknownShells makes completion refuse an unknown shell: by default it prints its help and
// reports success. Call it after root got its output, which the commands of the shells keep.
func refuseUnknownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				return cli.Usagef("completion needs a shell, bash, zsh, fish or powershell; see %s --help",
					cmd.CommandPath())
			}
		}
	}
}
