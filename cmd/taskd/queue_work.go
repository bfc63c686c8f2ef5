package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
	"github.com/taskd-go/task/queue"
)

// A work is what the flags of work say.
type work struct {
	queues      string
	once        bool
	max         int
	concurrency int
	lease       time.Duration
	timeout     time.Duration
	drain       time.Duration
	pool        bool
	allowed     patterns
	json        bool
}

func newWork(at *target) *cobra.Command {
	w := work{
		queues: job.DefaultQueue, concurrency: 10, lease: 30 * time.Second,
		timeout: job.DefaultConfig().Timeout, drain: 20 * time.Second,
	}
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Run jobs until SIGTERM or SIGINT",
		Long: fmt.Sprintf(`Work takes jobs and runs them, at least once each: again after a crash. It knows two types.

  exec  {"argv": [COMMAND, ...], "stdin": "", "dir": "", "env": {}}
        Exit code 0 is success, all else is tried again. It runs only what an --allow-exec pattern
        matches: one with a slash the absolute path, one without a bare name. What it prints goes
        to standard error. Its whole process group is killed when the worker ends, however that is,
        when its time is up, and before its lease can lapse.
  http  {"url": URL, "body": any JSON, "headers": {}, "timeout": "30s"}
        A POST; 2xx is success, 4xx is final, all else is tried again. The header Idempotency-Key
        is the same each time.

A job of another type becomes a dead letter.

--queue a,b takes from b only when a has none due; a:3,b:1 looks at a first three times of four.
--pool runs the jobs in worker processes, one in each at a time, instead of in this one.

The first SIGTERM or SIGINT takes no more jobs: running ones finish, for at most --drain-timeout,
then they are stopped and given back without having cost an attempt; so they are at once at the second signal.

Exit codes: 0 drained, or --max reached, or with --once nothing left; %d some jobs did not stop in time
and are listed, their leases lapse; %d "taskd queue restart" was given.`, exitLost, exitRestart),
		Example: `  taskd queue work --allow-exec 'git,/usr/local/bin/*'
  taskd queue work --once --max 100
  taskd queue work --queue urgent:3,default:1 --concurrency 4 --pool`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd, at) },
	}
	flags := cmd.Flags()
	flags.Var((*queueList)(&w.queues), "queue", "queues, with commas, strict a,b or weighted a:3,b:1")
	flags.BoolVar(&w.once, "once", false, "end when no job is due; delayed ones are not waited for")
	flags.Var(count{&w.max, 0, math.MaxInt}, "max", "end after so many jobs; 0: never")
	flags.Var(count{&w.concurrency, 1, 512}, "concurrency", "jobs at once")
	flags.Var(duration{&w.lease, leasable}, "lease", "when a worker is not heard of, its jobs are free after this; it is renewed")
	flags.Var(duration{&w.timeout, notNegative}, "timeout", "limit of a job that has none of its own; 0: none")
	flags.Var(duration{&w.drain, positive}, "drain-timeout", "how long a drain waits for running jobs")
	flags.BoolVar(&w.pool, "pool", false, "run the jobs in worker processes")
	add(flags, &w.allowed, "", "allow-exec", "commands that exec may run, with commas; may be repeated (default: none)")
	flags.BoolVar(&w.json, "json", false, "print the totals as JSON, and the log to standard error as such")
	return cmd
}

func leasable(d time.Duration) (bool, string) { return d >= 100*time.Millisecond, "100ms or more" }

// run works to the end. Nothing before RunIfWorker may have an effect: each worker process comes the same way.
func (w *work) run(cmd *cobra.Command, at *target) (err error) {
	// A guard is heard of so often that it ends its command before the lease lapses, which is renewed each third.
	pulse := ""
	if w.pool {
		pulse = os.Getenv(pulseVariable)
	}
	handlers, err := job.NewRegistry(execJobs(w.allowed, w.lease/2, pulse), httpJobs())
	if err != nil {
		return err
	}
	var remote *pooljob.Remote
	// A worker process whose parent died drains: it must be gone before the lease of its job lapses.
	cfg := task.Config{ServerName: "taskd-queue", WorkerNum: w.concurrency, MaxRunningNum: 1, DrainTimeout: w.lease / 2}
	if w.pool {
		remote = pooljob.Register(handlers)
		task.RunIfWorker(cfg)
	}
	if err := at.file.defaultQueue(cmd.Flags().Lookup("queue")); err != nil {
		return err
	}
	if err := handOver(cmd.Flags()); err != nil {
		return err
	}
	slog.SetDefault(w.logger(cmd, slog.LevelInfo))
	first, second, stop := twoSignals(cmd.Context())
	defer stop()
	db, err := at.open(first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if w.pool {
		cfg.Logger = w.logger(cmd, slog.LevelWarn)
		var end func() error
		if handlers, end, err = pooled(first, cfg, remote, w.lease/20); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}

	told := newLedger(cmd.OutOrStdout())
	worker := queue.NewWorker(db.queue, handlers, w.options(cmd, db, told)...)
	hurried := context.AfterFunc(second, func() { _ = worker.Shutdown(second) }) // Work returns the same error
	defer hurried()
	if !w.json {
		fmt.Fprintf(cmd.OutOrStdout(), "worker %s takes jobs from %s\n", worker.Name(), w.queues)
		defer told.show()()
	}
	if w.once {
		_, err = worker.WorkUntilEmpty(first, w.max)
	} else {
		err = worker.Work(first, w.max)
	}
	if w.json {
		err = errors.Join(err, writeJSON(cmd.OutOrStdout(), told.totals()))
	}
	return ended(err)
}

func (w *work) logger(cmd *cobra.Command, least slog.Level) *slog.Logger {
	options := slog.HandlerOptions{Level: least}
	if w.json {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &options))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &options))
}

func (w *work) options(cmd *cobra.Command, db *database, told *ledger) []queue.WorkerOption {
	options := []queue.WorkerOption{
		queue.Queues(w.queues), queue.Concurrency(w.concurrency), queue.Lease(w.lease), queue.Grace(w.drain),
		queue.Runner(&job.Runner{Timeout: w.timeout, OnEvent: told.event}),
	}
	return options
}

// ended gives the end of a worker its exit code.
func ended(err error) error {
	var abandoned *queue.AbandonedError
	switch {
	case errors.As(err, &abandoned):
		return &exitError{code: exitLost, err: err}
	case errors.Is(err, queue.ErrRestart):
		return &exitError{code: exitRestart, err: err}
	default:
		return err
	}
}

// killAfter is how much longer than its time limit a job's worker process lives.
const killAfter = 5 * time.Second

// pooled are the handlers of remote in a pool of their own, which end ends.
func pooled(ctx context.Context, cfg task.Config, remote *pooljob.Remote, pulse time.Duration) (handlers *job.Registry, end func() error, err error) {
	if cfg.TempDir, err = shortTempDir(); err != nil {
		return nil, nil, err
	}
	stopPulse, err := beatPulse(filepath.Join(cfg.TempDir, "pulse"), pulse)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(cfg.TempDir))
	}
	pool, err := task.New(cfg)
	if err == nil {
		err = pool.Start(ctx)
	}
	if err != nil {
		stopPulse()
		return nil, nil, errors.Join(err, os.RemoveAll(cfg.TempDir))
	}
	carry := func(ctx context.Context, e job.Envelope) job.Result {
		var hard time.Duration
		if limit, ok := ctx.Deadline(); ok {
			hard = time.Until(limit) + killAfter
		}
		h, err := remote.Handlers(pool, hard).Require(e.JobType)
		if err != nil {
			return job.Fail(err)
		}
		return h.Handle(ctx, e)
	}
	end = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killAfter)
		defer cancel()
		err := pool.Shutdown(ctx)
		stopPulse()
		return errors.Join(err, os.RemoveAll(cfg.TempDir))
	}
	handlers, err = job.NewRegistry(job.Func("exec", carry), job.Func("http", carry))
	return handlers, end, err
}

// shortTempDir makes a folder whose socket paths stay under their limit of 100 bytes, also where TMPDIR is long.
func shortTempDir() (string, error) {
	if dir, err := os.MkdirTemp("/tmp", "taskd-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "taskd-")
}
