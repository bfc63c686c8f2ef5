package task

import (
	"context"

	"github.com/taskd-go/task/tasktype"
	"github.com/taskd-go/task/worker"
)

// A Runner is a task: a value that travels to a worker process and runs there.
// Its exported fields are its arguments and must survive msgpack; they travel
// as a map by field name, so that another build of the program, or another
// language, can send them.
type Runner interface {
	Run(ctx context.Context, info Info) (any, error)
}

// An ExceptionHandler is a Runner that wants to answer for its own failure: an
// error, or a panic as a *PanicError. What OnException returns without an error
// becomes the result of a Sync call; the task counts as failed all the same.
type ExceptionHandler interface {
	OnException(ctx context.Context, err error, info Info) (any, error)
}

// Info tells a running task about itself:
//
//	type Info struct {
//		TaskID      uint64            // > 0, from one shared counter: a later call's id is larger
//		WorkerIndex int               // 0 … WorkerNum-1
//		Deadline    time.Time         // the caller's; it informs and does not end the context; zero: none
//		Meta        map[string]string // what the caller sent with WithMeta
//	}
type Info = tasktype.Info

// Draining returns, in a task, a channel that closes when the task's worker
// begins to drain, so that a long task can finish early. Outside a task it is nil.
func Draining(ctx context.Context) <-chan struct{} { return worker.Draining(ctx) }

// The causes for which a task's context ends. Inside the task, errors.Is(context.Cause(ctx),
// task.ErrSoftLimit) and so on tells which one it was.
var (
	ErrSoftLimit  = worker.ErrSoftLimit  // the task passed its soft time limit
	ErrDrain      = worker.ErrDrain      // the last second of DrainTimeout began
	ErrShutdown   = worker.ErrShutdown   // the context of Shutdown ended
	ErrCallerGone = worker.ErrCallerGone // the deadline, context or connection of a caller with WithCancel ended
)

// running is a decoded Runner as the worker runs it.
type running struct{ Runner }

func (r running) OnException(ctx context.Context, err error, info Info) (any, bool, error) {
	h, ok := r.Runner.(ExceptionHandler)
	if !ok {
		return nil, false, err
	}
	v, failure := h.OnException(ctx, err, info)
	return v, true, failure
}
