package task

import (
	"context"
	"time"

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

// Info is what a running task learns of itself.
type Info struct {
	TaskID      uint64    // > 0, from one shared counter: a later call's id is larger
	WorkerIndex int       // 0 … WorkerNum-1
	Deadline    time.Time // the caller's; it informs, it does not end ctx; zero: none
	Meta        map[string]string
}

// Draining returns, in a task, a channel that closes when the task's worker
// begins to drain, so that a long task can finish early. Outside a task it is nil.
func Draining(ctx context.Context) <-chan struct{} { return worker.Draining(ctx) }

// running is a decoded Runner as the worker runs it.
type running struct{ Runner }

func (r running) Run(ctx context.Context, info worker.Info) (any, error) {
	return r.Runner.Run(ctx, Info(info))
}

func (r running) OnException(ctx context.Context, err error, info worker.Info) (any, bool, error) {
	h, ok := r.Runner.(ExceptionHandler)
	if !ok {
		return nil, false, err
	}
	if p, ok := err.(*worker.PanicError); ok {
		err = &PanicError{Value: p.Value, Stack: p.Stack}
	}
	v, failure := h.OnException(ctx, err, Info(info))
	return v, true, failure
}
