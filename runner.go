package task

import (
	"context"

	"github.com/taskd-go/task/tasktype"
	"github.com/taskd-go/task/worker"
)

// A Runner is a task: a value that travels to a worker process and runs there. Its exported fields
// are its arguments. They travel as a msgpack map by field name, so another build of the program,
// or a program in another language, can send them.
//
// The context of Run ends at the soft limit, in the last second of DrainTimeout, at the end of
// Shutdown's context and, with WithCancel, when the caller is gone. Its cause is ErrSoftLimit,
// ErrDrain, ErrShutdown or ErrCallerGone.
type Runner interface {
	Run(ctx context.Context, info Info) (any, error)
}

// An ExceptionHandler is a Runner that handles its own failure: an error, or a panic as a
// *PanicError. A value that OnException returns without an error becomes the result of the Sync
// call; the task still counts as failed.
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

// Draining returns a channel that closes when the worker of the task with context ctx begins to
// drain, so that a long task can finish early. Outside a task it returns nil.
func Draining(ctx context.Context) <-chan struct{} { return worker.Draining(ctx) }

// The causes for which a task's context ends. In the task, errors.Is(context.Cause(ctx), ErrDrain)
// tests for one of them.
var (
	ErrSoftLimit  = worker.ErrSoftLimit  // the task passed its soft time limit
	ErrDrain      = worker.ErrDrain      // the last second of DrainTimeout began
	ErrShutdown   = worker.ErrShutdown   // the context of Shutdown ended
	ErrCallerGone = worker.ErrCallerGone // the deadline, context or connection of a caller with WithCancel ended
)

// running adapts a decoded Runner to package worker.
type running struct{ Runner }

func (r running) OnException(ctx context.Context, err error, info Info) (any, bool, error) {
	h, ok := r.Runner.(ExceptionHandler)
	if !ok {
		return nil, false, err
	}
	v, failure := h.OnException(ctx, err, info)
	return v, true, failure
}
