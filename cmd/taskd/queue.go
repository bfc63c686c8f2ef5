package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

const queueHelp = `taskd queue keeps jobs in a database until they are done: push puts one in, work runs
them, failed shows those that are dead and retry sends them again.

The database is --dsn or TASKD_DSN, which keeps a password out of the list of processes:

  sqlite:/path/file.db
  postgres://user:password@host/database
  mysql://user:password@host/database

or dsn in the config file, of which "taskd --help" tells. Without any it is the SQLite file
taskd/queue.db in $XDG_DATA_HOME, or in ~/.local/share. The tables are made at the first use,
and updated by the first use of a newer taskd.

Programs with queues of their own share a database by --table-prefix. A prefix has one set of
tables: name it, and --jobs-table and --failed-table where they are other ones, always alike.

The names that programs know are understood too: QUEUE_NAME, or default_queue in the section
[queue] of the file, is the queue of push and work without --queue; QUEUE_DB_CONNECTION, or
drivers.database.connection there, names an entry of the file's section [connections].

An id is what push prints; a dead letter has one of its own, which "taskd queue failed" shows.
Commands that show, clear or pause mean every queue unless --queue names one.`

func newQueue(file *configFile) *cobra.Command {
	at := target{file: file}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Keep jobs in a database and run them",
		Long:  queueHelp,
		Example: `  taskd queue push exec '{"argv": ["git", "gc"]}' --delay 10m
  taskd queue work --allow-exec git
  taskd queue failed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	at.addFlags(cmd.PersistentFlags())
	cmd.AddCommand(newWork(&at), newPush(&at), newSize(&at), newClear(&at), newList(&at), newInspect(&at), newFailed(&at),
		newRetry(&at), newPrune(&at), newPause(&at), newResume(&at), newRestart(&at), newCancel(&at), newMigrate(&at))
	return cmd
}

// with runs a command that needs the database and ends with the first signal.
func (at *target) with(cmd *cobra.Command, do func(context.Context, *database) error) error {
	ctx, _, stop := twoSignals(cmd.Context())
	defer stop()
	db, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	err = do(ctx, db)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return err
}

func newMigrate(at *target) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables",
		Long: `Migrate makes the queue's tables, or updates them. Every other command does so too; this one
is for a user of the database who may change tables, where the others may not.`,
		Example: `  taskd queue migrate --dsn postgres://admin@db/app`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(_ context.Context, db *database) error {
				fmt.Fprintf(cmd.OutOrStdout(), "%d migrations applied\n", db.applied)
				return nil
			})
		},
	}
}
