package worker

import (
	"context"
	"errors"

	"github.com/taskd-go/task/tasktype"
)

// Info tells a running task about itself.
type Info = tasktype.Info

// A PanicError is the error of a task, or of a handler, that panicked.
type PanicError = tasktype.PanicError

// A Task is a decoded package, ready to run.
type Task interface {
	Run(ctx context.Context, info Info) (any, error)
	// OnException handles the error of Run. handled is false if the task has no handler. If handled
	// is true and failure is nil, v is the call's result.
	OnException(ctx context.Context, err error, info Info) (v any, handled bool, failure error)
}

// A Decoder makes a Task from a payload, raw msgpack. It must not keep a payload of at most 4 KiB;
// a larger one belongs to it.
type Decoder func(payload []byte) (Task, error)

// errGoexit is the error of a task, or of a handler, that ended its goroutine.
var errGoexit = errors.New("the task ended its goroutine with runtime.Goexit")

// A Failure is a failure that the task's OnException did not handle.
type Failure struct {
	TaskID uint64
	Task   string
	Err    error  // what OnException returned, or Run's error; a *PanicError for a panic
	Text   string // the text of Err, even if its Error method panics
}

// The causes for which a task's context ends.
var (
	ErrSoftLimit  = errors.New("the task's soft time limit has passed")
	ErrDrain      = errors.New("the worker's drain limit is about to pass")
	ErrShutdown   = errors.New("the pool ends now")
	ErrCallerGone = errors.New("the caller's deadline or connection has ended")
)
