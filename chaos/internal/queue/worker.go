package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// The hidden command that is a worker of chaos, and the variable with the database that it works on, which may hold a
// password.
const (
	chaosWorkerName = "queue-worker"
	dsnVariable     = "CHAOS_DSN"
)

const (
	shortLease = 2 * time.Second        // what a killed worker's jobs wait for …
	longLease  = 5 * time.Second        // … and where a database must be back before that
	chaosRenew = 300 * time.Millisecond // so that a renewal comes soon
	chaosJobs  = 2                      // at once in a worker under random kills
	chaosType  = "chaos"                // of the jobs
	chaosHard  = 30 * time.Second       // limit of a run
)

// errTold is what a job fails with that is told to.
var errTold = errors.New("told to fail")

// A chaosWorker is one worker process, as its argument describes it.
type chaosWorker struct {
	Name    string // in this run
	Dir     string // of the effects, and of the worker's pool under its name
	Prefix  string // of the tables
	Meeting string // path of the socket
	Step    string // where to stop; empty: nowhere
	Jobs    int    // at once, each in a process of its pool
	Lease   time.Duration
	Verbose bool

	effects effects
	step    chaosStep
}

// NewWorkerCommand returns the hidden command that runs a worker process of chaos queue.
func NewWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    chaosWorkerName + " JSON",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := &chaosWorker{}
			if err := json.Unmarshal([]byte(args[0]), w); err != nil || w.Name == "" {
				return cli.Usagef("%s is a part of chaos queue", chaosWorkerName)
			}
			w.effects.dir = w.Dir
			w.step, _ = stepNamed(w.Step)
			return w.run(cmd.Context(), os.Getenv(dsnVariable))
		},
	}
}

// poolDir is where the worker's pool has its sockets.
func (w *chaosWorker) poolDir() string { return filepath.Join(w.Dir, w.Name) }

func (w *chaosWorker) pool() task.Config {
	return task.Config{
		ServerName: "chaos", TempDir: w.poolDir(), WorkerNum: w.Jobs, MaxRunningNum: 1, DrainTimeout: w.Lease / 2,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// run works until SIGTERM, or until its parent is gone. Its pool's processes do not come further than RunIfWorker.
func (w *chaosWorker) run(ctx context.Context, dsn string) error {
	handlers, err := job.NewRegistry(job.Typed(chaosType, w.handle))
	if err != nil {
		return err
	}
	remote, cfg := pooljob.Register(handlers), w.pool()
	task.RunIfWorker(cfg)
	go func() { // the parent holds the other end
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(cli.ExitFailed)
	}()
	first, _, stop := cli.TwoSignals(ctx)
	defer stop()
	db, err := w.open(first, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	pool, err := task.New(cfg)
	if err != nil {
		return err
	}
	if err := pool.Start(first); err != nil {
		if first.Err() != nil {
			return nil // told to go before it was up
		}
		return err
	}
	worker := queue.NewWorker(db.queue, remote.Handlers(pool, chaosHard), w.options(db)...)
	err = worker.Work(first, 0)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	if ended := pool.Shutdown(limited); err == nil {
		err = ended
	}
	return err
}

// open connects with the tables of this run. What is written stops at the step.
func (w *chaosWorker) open(ctx context.Context, dsn string) (*database, error) {
	at := source{dsn: dsn, tables: sqlqueue.Tables{Prefix: w.Prefix}}
	if w.step.write != noWrite {
		hooks := newPauser(w.step, at.tables, w.meet).hooks()
		at.wrap = func(db *sql.DB) *sql.DB { return sqltest.Wrap(db, hooks) }
	}
	return at.connect(ctx)
}

func (w *chaosWorker) meet() (answerLost bool) {
	return meet(w.Meeting, arrival{w.Name, os.Getpid()}) == wordLost
}

func (w *chaosWorker) options(db *database) []queue.WorkerOption {
	logger := slog.New(slog.DiscardHandler)
	if w.Verbose {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("chaos", w.Name)
	}
	options := []queue.WorkerOption{
		queue.Concurrency(w.Jobs), queue.Lease(w.Lease), queue.RenewEvery(chaosRenew),
		queue.Runner(&job.Runner{Logger: logger, OnEvent: w.event}),
	}
	return options
}

// event notes jobs that the worker cannot answer for.
func (w *chaosWorker) event(e job.Event) {
	if e.Kind == job.EventUnsettled {
		_ = w.effects.write(effect{What: effectUnsettled, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name})
	}
}

// handle runs a job in a process of the pool.
func (w *chaosWorker) handle(ctx context.Context, o chaosOrder, e job.Envelope) job.Result {
	release, only, err := alone(w.Dir, e.JobID)
	if err != nil {
		return job.Fail(err)
	}
	defer release()
	about := effect{What: effectBegan, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name, Alone: only, History: past(job.Failures(e))}
	if err := w.effects.write(about); err != nil {
		return job.Fail(err)
	}
	if w.Step != "" && w.step.write == noWrite {
		w.meet()
	}
	length := o.For
	if e.Attempt > 1 && o.Later > 0 {
		length = o.Later
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
		return job.Retry(ctx.Err())
	}
	failed := e.Attempt <= o.Fails
	if err := w.effects.write(effect{What: effectEnded, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name, Failed: failed}); err != nil {
		return job.Fail(err)
	}
	if failed {
		return job.Retry(errTold)
	}
	return job.Success()
}
