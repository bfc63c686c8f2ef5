package pooljob

import (
	"context"
	"errors"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
)

const (
	taskName = "github.com/taskd-go/task/pooljob"

	slotWait   = 5 * time.Second // how long a job waits in the pool's caller for a free worker
	busyDelay  = time.Second     // … and then in its queue; and there when the worker that had it died before it began
	notRunning = time.Minute     // the same for a pool that cannot run it as it is
	clockSkew  = time.Second     // more than a context ends after its deadline has passed elsewhere
)

// A Remote is the task that carries jobs to the workers.
type Remote struct {
	types []string
	task  task.Func[request, answer]
}

// request is a job on its way to a worker.
type request struct {
	Envelope string // JSON
	Ticket   string // path
}

// Register makes the handlers of reg a task of the pool. It belongs before the pool's Start, in every copy of the
// program. Like task.Register it panics when it is called twice; one registry holds all the handlers of a program.
func Register(reg *job.Registry) *Remote {
	w := worker{reg}
	return &Remote{types: reg.Types(), task: task.Define(taskName, w.run)}
}

// Handlers returns, for each type of the registered handlers, a handler that runs the job in pool. hardLimit stops a
// job's worker process that long after the job began; 0: only the pool's own TimeLimit does, and without one a handler
// that is deaf to its context keeps its caller for as long as it runs.
func (r *Remote) Handlers(pool task.Caller, hardLimit time.Duration) *job.Registry {
	reg := &job.Registry{}
	// Replace refuses an empty type only, and a registry holds none.
	_ = reg.Replace(&carrier{remote: r, pool: pool, hardLimit: max(hardLimit, 0), slotWait: slotWait})
	return reg
}

// A carrier is the handler that takes jobs to the pool.
type carrier struct {
	remote    *Remote
	pool      task.Caller
	hardLimit time.Duration
	slotWait  time.Duration
}

func (c *carrier) Types() []string { return c.remote.types }

func (c *carrier) Handle(ctx context.Context, e job.Envelope) job.Result {
	if err := ctx.Err(); err != nil {
		return job.Retry(err)
	}
	envelope, err := e.Encode()
	if err != nil {
		return job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: err})
	}
	ticket, err := newTicket()
	if err != nil {
		return job.Defer(notRunning).WithErr(err)
	}
	defer ticket.close()

	a, err := c.remote.task.Sync(ctx, c.pool, request{string(envelope), ticket.path()},
		task.WithTimeout(0), task.WithWait(c.slotWait), task.WithCancel(), task.WithTimeLimit(0, c.hardLimit))
	if err != nil {
		return failed(ctx, ticket, err)
	}
	return answered(ctx, a)
}

// answered is the handler's own result, but for one that gave up because its caller's context ended.
func answered(ctx context.Context, a answer) job.Result {
	if a.CallerEnded {
		if ended := endOf(ctx); ended != nil && a.Reason == job.ReasonInterrupted {
			return job.Retry(ended)
		}
	}
	return a.result()
}

// endOf returns why ctx ended, for one whose deadline the worker or the call has seen pass: each has a timer of its
// own, and which of them is first is chance.
func endOf(ctx context.Context) error {
	limit := time.NewTimer(clockSkew)
	defer limit.Stop()
	select {
	case <-ctx.Done():
	case <-limit.C:
	}
	return ctx.Err()
}

// forOthers are the ends of a worker that are not the doing of a job that was lost there: another job was past its hard
// limit (its own would have been answered with that), or the pool ended.
var forOthers = map[task.Reason]bool{task.ReasonHardLimit: true, task.ReasonShutdown: true}

// failed turns a failed call into a result, once the job is sure not to run any more.
func failed(ctx context.Context, ticket *ticket, err error) job.Result {
	var call *task.Error
	if !errors.As(err, &call) {
		return job.Retry(err) // it ran, and its answer cannot be read
	}
	if errors.Is(err, context.DeadlineExceeded) || call.Status == task.ErrPackageExpire {
		endOf(ctx)
	}
	ended := ctx.Err() // and whether it is why the call failed; a crash or a time limit counts even then
	mayHaveRun := call.Delivery == task.MayHaveRun
	if mayHaveRun {
		ticket.wait()
	}
	switch {
	case call.Delivery == task.Ran:
		return job.Retry(errors.New(call.Message))
	case ended != nil && (!mayHaveRun || errors.Is(err, ended)):
		return job.Retry(ended)
	case mayHaveRun && call.Status == task.ErrTask: // by the hard limit
		return job.Retry(&job.DeadError{Reason: job.ReasonTimeout, Err: err})
	case mayHaveRun && (forOthers[call.Reason] || errors.Is(err, task.ErrClosed)):
		return job.Defer(0).WithErr(&job.DeadError{Reason: job.ReasonInterrupted, Err: err})
	case mayHaveRun:
		return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: err})
	case call.Status == task.ErrProcessBusy, call.Status == task.ErrSockTimeout:
		return job.Defer(busyDelay).WithErr(err)
	default:
		return job.Defer(notRunning).WithErr(err)
	}
}
