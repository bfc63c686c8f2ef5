// Package queuecmd has the commands of a queue of jobs in a database.
package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/internal/signals"
	"github.com/taskd-go/task/job"
)

const help = `taskd queue keeps jobs in a database until they are done. push stores a job, and work runs jobs. A
job that fails for good becomes a dead letter: failed shows the dead letters, and retry puts them
back into their queues.

The database is --dsn, or TASKD_DSN, which keeps a password out of the list of processes:

  sqlite:/path/file.db
  postgres://user:password@host/database
  mysql://user:password@host/database

The config file, which "taskd --help" describes, can name it as dsn. Otherwise it is the SQLite
file taskd/queue.db in $XDG_DATA_HOME, or in ~/.local/share. The first command makes the tables,
and the first command of a newer taskd updates them.

If several programs share a database, give each its own --table-prefix. All commands on the same
jobs need the same --table-prefix, --jobs-table and --failed-table.

taskd also reads the settings that programs read. QUEUE_NAME, or default_queue in the section
[queue] of the config file, is the queue of push and work without --queue. QUEUE_DB_CONNECTION, or
drivers.database.connection in that section, names an entry of the file's section [connections].

The id of a job is what push prints. A dead letter has its own id, which "taskd queue failed"
shows. Commands that show, clear or pause act on every queue unless --queue names one.`

// Jobs are the job types that the command work runs.
type Jobs interface {
	// Help describes the types in the help of the command.
	Help() string
	// AddFlags adds flags to the command.
	AddFlags(*pflag.FlagSet)
	// Handlers returns the handlers. lease is how long a job stays reserved without being renewed;
	// pooled says that the handlers may run in a worker process, which calls Handlers too.
	Handlers(lease time.Duration, pooled bool) (*job.Registry, error)
	// Heartbeat tells worker processes that start after it, until stop, that this process lives.
	// path is a file that it may use.
	Heartbeat(path string, lease time.Duration) (stop func(), err error)
}

// A Database opens the database of the commands.
type Database interface {
	// AddFlags adds the flags that all commands have.
	AddFlags(*pflag.FlagSet)
	// Open returns the queue. Each command calls it once and closes what it returns.
	Open(context.Context) (*database.DB, error)
}

// Settings are settings besides the flags.
type Settings interface {
	// DefaultQueue sets the flag that names the queue of push and work, unless the user did.
	DefaultQueue(*pflag.Flag) error
	// HandOver prepares the environment for worker processes, which have the same flags.
	HandOver() error
}

// commands are the commands on one database.
type commands struct {
	database Database
	settings Settings
	jobs     Jobs
}

// New returns the command queue, whose subcommands use db.
func New(db Database, s Settings, jobs Jobs) *cobra.Command {
	c := &commands{database: db, settings: s, jobs: jobs}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Keep jobs in a database and run them",
		Long:  help,
		Example: `  taskd queue push exec '{"argv": ["git", "gc"]}' --delay 10m
  taskd queue work --allow-exec git
  taskd queue failed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.database.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(c.work(), c.push(), c.size(), c.clear(), c.list(), c.inspect(), c.failed(),
		c.retry(), c.prune(), c.pause(), c.resume(), c.restart(), c.cancel(), c.migrate())
	return cmd
}

// with opens the database for do, whose context ends with the first signal.
func (c *commands) with(cmd *cobra.Command, do func(context.Context, *database.DB) error) error {
	ctx, _, stop := signals.Two(cmd.Context())
	defer stop()
	db, err := c.database.Open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	err = do(ctx, db)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return cli.ErrInterrupted
	}
	return err
}

func (c *commands) migrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables",
		Long: `Migrate makes or updates the queue's tables. Every other command does that too. If the database
user of the other commands may not change tables, run migrate as a user who may.`,
		Example: `  taskd queue migrate --dsn postgres://admin@db/app`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(_ context.Context, db *database.DB) error {
				fmt.Fprintf(cmd.OutOrStdout(), "%d migrations applied\n", db.Applied)
				return nil
			})
		},
	}
}

// oneID is the rule of the arguments of a command on one job.
var oneID = cli.Args(1, 1, "needs one ID")
