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

const rootHelp = `taskd runs tasks in a pool of worker processes, and replaces workers that fail.

A pool is one "taskd serve" and its workers. The commands call, async and status find it by its
name and its folder. Give them the same --name and --dir:

  taskd serve --name app --dir /run/app &
  taskd call echo '{"hello": "world"}' --name app --dir /run/app

The flags that set up or find a pool, --allow-exec, and the flags of the queue's database and
tables can also be set by environment variables: --name by TASKD_NAME, --max-running by
TASKD_MAX_RUNNING, and so on. Or a TOML file sets them, under their names:

  name = "app"
  workers = 8
  drain-timeout = "1m"
  allow-exec = ["git", "/usr/local/bin/*"]
  dsn = "postgres://user:password@host/database"

The file is the one that --config or TASKD_CONFIG names; otherwise
$XDG_CONFIG_HOME/taskd/config.toml (~/.config/taskd/config.toml), or if that is missing
/etc/taskd.toml. A flag overrides its environment variable, the variable overrides the file, and
the file overrides the default.

Exit codes:
  0    done; serve: drained
  1    failed, and standard error has the reason; call: the task ran and failed
  2    wrong flags, arguments, environment or config file; nothing was started
  3    call, async: the task did not run, and repeating it is safe; status: no pool answers
  4    call, async: the task may have run
  5    serve, queue work: ended before the drain was complete; lost tasks and jobs are listed
  6    queue work: "taskd queue restart" was given
  130  a queue command other than work: interrupted`

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
  taskd status --watch            show its workers until Ctrl-C`,
		Version:       buildText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := r.Read(cmd)
			c.started = err == nil
			return err
		},
	}
	c.root.SetVersionTemplate("{{.Version}}")
	c.root.Flags().Bool("version", false, "print the version of taskd")
	r.AddFlag(c.root.PersistentFlags())
	tasks := builtin.TaskNames()
	c.root.AddCommand(
		poolcmd.Serve(r, builtin.NewTasks()), poolcmd.Call(tasks), poolcmd.Async(tasks), poolcmd.Status(),
		queuecmd.New(database.NewTarget(r), r, &builtin.Jobs{}), version(c.root.Version),
		builtin.Guard(),
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
