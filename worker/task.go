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
	// OnException answers for a failed Run; handled is false when the task has no handler of
	// its own. With handled and no failure, v is the call's result.
	OnException(ctx context.Context, err error, info Info) (v any, handled bool, failure error)
}

// A Decoder makes a Task of a payload: raw msgpack that it must not keep, but
// for one of more than 4 KiB, which is its own.
type Decoder func(payload []byte) (Task, error)

// errGoexit is the error of a task, or of a handler, that ended its goroutine.
var errGoexit = errors.New("the task ended its goroutine with runtime.Goexit")

// A Failure is one that the task's own handler did not settle.
type Failure struct {
	TaskID uint64
	Task   string
	Err    error  // what OnException returned, or Run's error; a *PanicError for a panic
	Text   string // its words, also where its Error method panics
}

// Causes of a task's context.
var (
	ErrSoftLimit  = errors.New("the task's soft time limit has passed")
	ErrDrain      = errors.New("the worker's drain limit is about to pass")
	ErrShutdown   = errors.New("the pool ends now")
	ErrCallerGone = errors.New("the caller's deadline or connection has ended")
)
