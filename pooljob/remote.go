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

	slotWait   = 5 * time.Second // how long the call waits for a free slot
	busyDelay  = time.Second     // how long a job is deferred if none was free or its worker died before it started
	notRunning = time.Minute     // how long a job is deferred that the pool cannot run as it is
	clockSkew  = time.Second     // more than the ends of two timers with the same deadline differ
)

// A Remote is the task that runs jobs in the workers of a pool. It is safe for concurrent use.
type Remote struct {
	types []string
	task  task.Func[request, answer]
}

// A request is a job on its way to a worker.
type request struct {
	Envelope string // JSON
	RunLock  string // path
}

// Register makes the handlers of reg a task. Call it once, with all handlers of the program, before
// the pool starts, in the caller and in the workers, such as in a package variable. A second call
// panics, as task.Register does.
func Register(reg *job.Registry) *Remote {
	return register(taskName, reg)
}

func register(name string, reg *job.Registry) *Remote {
	return &Remote{types: reg.Types(), task: task.Define(name, worker{reg}.run)}
}

// Handlers returns a handler for each registered type that runs the job in pool. When a job has run
// for hardLimit, its worker process is killed. With 0 or less only the pool's own TimeLimit
// applies; without that limit too, the caller of a handler that ignores its context waits until the
// handler returns.
func (r *Remote) Handlers(pool task.Caller, hardLimit time.Duration) *job.Registry {
	reg := &job.Registry{}
	// Replace returns an error for an empty type alone, and a registry has none.
	_ = reg.Replace(&carrier{remote: r, pool: pool, hardLimit: max(hardLimit, 0), slotWait: slotWait})
	return reg
}

// A carrier is the handler that runs jobs in the pool.
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
	runLock, err := newRunLock()
	if err != nil {
		return job.Defer(notRunning).WithErr(err)
	}
	defer runLock.close()

	a, err := c.remote.task.Sync(ctx, c.pool, request{string(envelope), runLock.path()},
		task.WithTimeout(0), task.WithWait(c.slotWait), task.WithCancel(), task.WithTimeLimit(0, c.hardLimit))
	if err != nil {
		return failed(ctx, runLock, err)
	}
	return answered(ctx, a)
}

// answered returns the handler's own result, or the end of ctx if the handler stopped because its
// caller's context ended.
func answered(ctx context.Context, a answer) job.Result {
	if a.CallerEnded {
		if ended := endOf(ctx); ended != nil && a.Reason == job.ReasonInterrupted {
			return job.Retry(ended)
		}
	}
	return a.result()
}

// endOf returns the error of a ctx whose deadline has passed in the worker or the call. They have
// timers of their own, which may end a little before that of ctx.
func endOf(ctx context.Context) error {
	limit := time.NewTimer(clockSkew)
	defer limit.Stop()
	select {
	case <-ctx.Done():
	case <-limit.C:
	}
	return ctx.Err()
}

// notByTheJob are the reasons for which a worker ends that a job lost in it did not cause: another
// job's hard limit, since the job's own is answered as such, and the end of the pool.
var notByTheJob = map[task.Reason]bool{task.ReasonHardLimit: true, task.ReasonShutdown: true}

// failed returns the result of a call that failed. It returns when the job no longer runs.
func failed(ctx context.Context, runLock *runLock, err error) job.Result {
	var call *task.Error
	if !errors.As(err, &call) {
		return job.Retry(err) // it ran, and its answer cannot be read
	}
	if errors.Is(err, context.DeadlineExceeded) || call.Status == task.ErrPackageExpire {
		endOf(ctx)
	}
	ended := ctx.Err() // before the wait: a crash or a time limit counts even if ctx ends meanwhile
	mayHaveRun := call.Delivery == task.MayHaveRun
	if mayHaveRun {
		runLock.wait()
	}
	switch {
	case call.Delivery == task.Ran:
		return job.Retry(errors.New(call.Message))
	case ended != nil && (!mayHaveRun || errors.Is(err, ended)):
		return job.Retry(ended)
	case mayHaveRun && call.Status == task.ErrTask: // past its hard limit
		return job.Retry(&job.DeadError{Reason: job.ReasonTimeout, Err: err})
	case mayHaveRun && (notByTheJob[call.Reason] || errors.Is(err, task.ErrClosed)):
		return job.Defer(0).WithErr(&job.DeadError{Reason: job.ReasonInterrupted, Err: err})
	case mayHaveRun:
		return job.Retry(&job.DeadError{Reason: job.ReasonCrashed, Err: err})
	case call.Status == task.ErrProcessBusy, call.Status == task.ErrSockTimeout:
		return job.Defer(busyDelay).WithErr(err)
	default:
		return job.Defer(notRunning).WithErr(err)
	}
}
