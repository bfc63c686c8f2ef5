package main

import (
	"github.com/spf13/cobra"
)

const rootHelp = `taskd runs tasks in a pool of worker processes that heals itself.

A pool is one "taskd serve" and its workers. The other commands find it by its
name and its folder, which are given alike to both sides:

  taskd serve --name app --dir /run/app &
  taskd call echo '{"hello": "world"}' --name app --dir /run/app

Flags that set up a pool or find one can also stand in the environment:
--name is TASKD_NAME, --drain-timeout is TASKD_DRAIN_TIMEOUT, and so on. A flag
overrides its variable.

Exit codes:
  0    done; serve: drained
  1    failed, standard error says why; call: the task ran and failed
  2    wrong flags, arguments or environment; nothing was started
  3    call, async: the task did not run, it is safe to repeat
  4    call, async: the task may have run
  5    serve, queue work: ended before the drain was complete, what was lost is listed
  6    queue work: a restart was asked for
  130  demo, a question of queue: interrupted`

// newRoot makes the command line. started turns true when flags, environment
// and arguments are found good and the command begins.
func newRoot() (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   "taskd",
		Short: "Run tasks in a pool of worker processes",
		Long:  rootHelp,
		Example: `  taskd demo                      hash the files of this folder with three workers
  taskd demo --kill /usr/share    the same, and kill a worker on the way
  taskd serve --workers 8         run a pool until SIGTERM
  taskd status --watch            look at it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := readEnvironment(cmd.Flags()); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	root.AddCommand(newDemo(), newServe(), newCall(), newAsync(), newStatus(), newQueue(), newChaos(), newGuard())
	root.AddCommand(&cobra.Command{
		Use:   "testing",
		Short: "How to put a pool under stress",
		Long: `taskd chaos loads a pool with calls while its workers are killed, stopped,
terminated and fed with garbage, and checks that every answer was true:

  taskd chaos --duration 60s --workers 4 --seed 1

"taskd chaos --help" says more.`,
	})
	return root, started
}
