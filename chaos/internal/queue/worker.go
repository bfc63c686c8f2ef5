package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/internal/signals"
	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

const (
	workerCommand = "queue-worker"
	dsnVariable   = "CHAOS_DSN" // of the worker: arguments are visible to others, and a DSN may hold a password
)

const (
	shortLease = 2 * time.Second        // the jobs of a killed worker wait so long …
	longLease  = 5 * time.Second        // … and longer where the database must be back before that
	renewEvery = 300 * time.Millisecond // so that a renewal comes soon
	pollEvery  = 50 * time.Millisecond
	runLimit   = 30 * time.Second
	jobType    = "chaos"

	randomConcurrency = 2 // jobs at once in a worker under random kills
)

// errOrdered is the error of a job that has the order to fail.
var errOrdered = errors.New("failed as ordered")

// A worker is one worker process, as its argument describes it.
type worker struct {
	Name    string // in its workload
	Dir     string // for the effects; the pool is in the folder Name there
	Prefix  string // of the tables
	Gate    string // path of the gate's socket
	Step    string // where to stop; empty: nowhere
	Jobs    int    // at once, each in a process of the pool
	Lease   time.Duration
	Verbose bool

	effects effects
	step    step
}

// NewWorkerCommand returns the hidden command that runs a worker process of chaos queue.
func NewWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand + " JSON",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := &worker{}
			if err := json.Unmarshal([]byte(args[0]), w); err != nil || w.Name == "" {
				return cli.Usagef("%s is a part of chaos", workerCommand)
			}
			w.effects.dir = w.Dir
			w.step, _ = stepNamed(w.Step)
			return w.run(cmd.Context(), os.Getenv(dsnVariable))
		},
	}
}

// poolDir returns the folder of the pool's sockets.
func (w *worker) poolDir() string { return filepath.Join(w.Dir, w.Name) }

func (w *worker) pool() task.Config {
	return task.Config{
		ServerName: "chaos", TempDir: w.poolDir(), WorkerNum: w.Jobs, MaxRunningNum: 1, DrainTimeout: w.Lease / 2,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// run works until SIGTERM, or until its parent ends. In a process of its pool, RunIfWorker does not
// return.
func (w *worker) run(ctx context.Context, dsn string) error {
	handlers, err := job.NewRegistry(job.Typed(jobType, w.handle))
	if err != nil {
		return err
	}
	remote, cfg := pooljob.Register(handlers), w.pool()
	task.RunIfWorker(cfg)
	go func() { // the parent holds the other end of standard input
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(cli.ExitFailed)
	}()
	first, _, stop := signals.Two(ctx)
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
			return nil // stopped before the pool was ready
		}
		return err
	}
	err = queue.NewWorker(db.queue, remote.Handlers(pool, runLimit), w.options()...).Work(first, 0)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	if ended := pool.Shutdown(limited); err == nil {
		err = ended
	}
	return err
}

// open connects to the tables of the workload, through the hook of the step.
func (w *worker) open(ctx context.Context, dsn string) (*database, error) {
	at := source{dsn: dsn, tables: sqlqueue.Tables{Prefix: w.Prefix}}
	if w.step.write != noWrite {
		hooks := newStepHook(w.step, at.tables, func() bool { return began(w.Dir) }, w.wait).hooks()
		at.wrap = func(db *sql.DB) *sql.DB { return sqltest.Wrap(db, hooks) }
	}
	return at.connect(ctx)
}

// wait waits at the gate.
func (w *worker) wait() (answerLost bool) {
	return waitAtGate(w.Gate, arrival{w.Name, os.Getpid()}) == wordLost
}

func (w *worker) options() []queue.WorkerOption {
	logger := slog.New(slog.DiscardHandler)
	if w.Verbose {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("chaos", w.Name)
	}
	return []queue.WorkerOption{
		queue.Concurrency(w.Jobs), queue.Lease(w.Lease), queue.RenewEvery(renewEvery), queue.Poll(pollEvery),
		queue.Runner(&job.Runner{Logger: logger, OnEvent: w.event}),
	}
}

// event records the worker's events. What matters are runs whose end it could not store, or does
// not know to be stored.
func (w *worker) event(e job.Event) {
	what := effectEvent
	if e.Kind == job.EventUnsettled {
		what = effectUnsettled
	}
	_ = w.effects.write(effect{
		What: what, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name,
		Note: fmt.Sprintf("%s %s %v", e.Kind, e.Reason, e.Err),
	})
}

// handle runs a job in a process of the pool.
func (w *worker) handle(ctx context.Context, o order, e job.Envelope) job.Result {
	release, alone, err := lockJob(w.Dir, e.JobID)
	if err != nil {
		return job.Fail(err)
	}
	defer release()
	begin := effect{
		What: effectBegan, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name,
		Alone: alone, History: past(job.Failures(e)),
	}
	if err := w.effects.write(begin); err != nil {
		return job.Fail(err)
	}
	if w.Step != "" && w.step.write == noWrite {
		w.wait()
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
	end := effect{What: effectEnded, Job: e.JobID, Attempt: e.Attempt, Owner: w.Name, Failed: failed}
	if err := w.effects.write(end); err != nil {
		return job.Fail(err)
	}
	if failed {
		return job.Retry(errOrdered)
	}
	return job.Success()
}
