package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
	"github.com/taskd-go/task/internal/signals"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// A work is a run of the command work, as its flags describe it.
type work struct {
	*commands
	queues      string
	once        bool
	max         int
	concurrency int
	lease       time.Duration
	timeout     time.Duration
	drain       time.Duration
	pool        bool
	json        bool
}

func workHelp(jobs string) string {
	return fmt.Sprintf(`Work takes jobs and runs them, each at least once: after a crash a job runs again. It
knows these types:

%s

A job of another type becomes a dead letter.

With --queue a,b work takes from b only when a has no due job. With a:3,b:1 it looks at a first
three times out of four. --pool runs the jobs in worker processes, one job at a time in each.

At the first SIGTERM or SIGINT work takes no more jobs, and running ones have --drain-timeout to
finish. After that, or at the second signal, it stops them and gives them back; the attempt does
not count.

Exit code 0 means that work drained, reached --max, or with --once found no more jobs; %d that some
jobs did not stop in time: work lists them, and they run again when their leases expire; %d that
"taskd queue restart" was given.`,
		jobs, cli.ExitLost, cli.ExitRestart)
}

func (c *commands) work() *cobra.Command {
	w := work{
		commands: c, queues: job.DefaultQueue, concurrency: 10, lease: 30 * time.Second,
		timeout: job.DefaultConfig().Timeout, drain: 20 * time.Second,
	}
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Run jobs until SIGTERM or SIGINT",
		Long:  workHelp(c.jobs.Help()),
		Example: `  taskd queue work --allow-exec 'git,/usr/local/bin/*'
  taskd queue work --once --max 100
  taskd queue work --queue urgent:3,default:1 --concurrency 4 --pool`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	flags := cmd.Flags()
	flags.Var((*queueList)(&w.queues), "queue", "queues, in strict order a,b or weighted a:3,b:1")
	flags.BoolVar(&w.once, "once", false, "end when no job is due; delayed jobs stay")
	flags.Var(settings.Count{P: &w.max, Max: math.MaxInt}, "max", "end after this many jobs; 0: never")
	flags.Var(settings.Count{P: &w.concurrency, Min: 1, Max: 512}, "concurrency", "jobs at once")
	flags.Var(settings.Duration{P: &w.lease, Rule: atLeast100ms}, "lease",
		"how long a job stays reserved if its worker dies; renewed while it runs")
	flags.Var(settings.Duration{P: &w.timeout, Rule: settings.NotNegative}, "timeout",
		"time limit of a job that has none; 0: no limit")
	flags.Var(settings.Duration{P: &w.drain, Rule: settings.Positive}, "drain-timeout",
		"how long a drain waits for running jobs")
	flags.BoolVar(&w.pool, "pool", false, "run the jobs in worker processes")
	c.jobs.AddFlags(flags)
	flags.BoolVar(&w.json, "json", false, "print the totals, and the log on standard error, as JSON")
	return cmd
}

func atLeast100ms(d time.Duration) (bool, string) { return d >= 100*time.Millisecond, "100ms or more" }

// run works to the end. A worker process runs the same code up to newJobPool, so nothing before
// that may have an effect.
func (w *work) run(cmd *cobra.Command) (err error) {
	handlers, err := w.jobs.Handlers(w.lease, w.pool)
	if err != nil {
		return err
	}
	var pool *jobPool
	if w.pool {
		pool = newJobPool(handlers, w.concurrency, w.lease)
	}
	if err := w.settings.DefaultQueue(cmd.Flags().Lookup("queue")); err != nil {
		return err
	}
	if err := w.settings.HandOver(); err != nil {
		return err
	}
	slog.SetDefault(w.logger(cmd, slog.LevelInfo))
	first, second, stop := signals.Two(cmd.Context())
	defer stop()
	db, err := w.database.Open(first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if w.pool {
		pool.cfg.Logger = w.logger(cmd, slog.LevelWarn)
		var stop func() error
		handlers, stop, err = pool.start(first, func(path string) (func(), error) {
			return w.jobs.Heartbeat(path, w.lease)
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	return w.serve(cmd, first, second, db, handlers)
}

// serve runs jobs until the first context ends, and gives running ones back when the second one
// ends.
func (w *work) serve(cmd *cobra.Command, first, second context.Context, db *database.DB, handlers *job.Registry) (
	err error) {
	var counted counter
	worker := queue.NewWorker(db.Queue, handlers, w.options(&counted)...)
	hurried := context.AfterFunc(second, func() { _ = worker.Shutdown(second) }) // Work returns the same error
	defer hurried()
	if !w.json {
		fmt.Fprintf(cmd.OutOrStdout(), "worker %s takes jobs from %s\n", worker.Name(), w.queues)
		defer term.ShowLine(cmd.OutOrStdout(), counted.String).Stop()
	}
	if w.once {
		_, err = worker.WorkUntilEmpty(first, w.max)
	} else {
		err = worker.Work(first, w.max)
	}
	if w.json {
		err = errors.Join(err, term.JSON(cmd.OutOrStdout(), counted.totals()))
	}
	return withExitCode(err)
}

func (w *work) logger(cmd *cobra.Command, least slog.Level) *slog.Logger {
	options := slog.HandlerOptions{Level: least}
	if w.json {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &options))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &options))
}

func (w *work) options(counted *counter) []queue.WorkerOption {
	return []queue.WorkerOption{
		queue.Queues(w.queues), queue.Concurrency(w.concurrency), queue.Lease(w.lease), queue.Grace(w.drain),
		queue.Runner(&job.Runner{Timeout: w.timeout, OnEvent: counted.event}),
	}
}

// withExitCode adds the exit code to the error of a worker.
func withExitCode(err error) error {
	var abandoned *queue.AbandonedError
	switch {
	case errors.As(err, &abandoned):
		return &cli.Error{Code: cli.ExitLost, Err: err}
	case errors.Is(err, queue.ErrRestart):
		return &cli.Error{Code: cli.ExitRestart, Err: err}
	default:
		return err
	}
}
