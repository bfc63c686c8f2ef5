package task

import (
	"errors"
	"fmt"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/tasktype"
)

// A Delivery says what is known about the task of a failed call, and so whether the caller may try
// again. Its String method returns "may have run", "not run" or "ran".
type Delivery = tasktype.Delivery

// The deliveries. The zero value is MayHaveRun.
const (
	MayHaveRun Delivery = tasktype.MayHaveRun // nothing is proved; the task may still be running
	NotRun     Delivery = tasktype.NotRun     // the task did not run and will not
	Ran        Delivery = tasktype.Ran        // the task ran to its end
)

// An Error is the error of a failed call. As, Decode and the methods of a Func may return a
// decoding error instead: then the task ran, and its result has another type. errors.Is finds the
// Status and the cause: ErrClosed, ErrNotStarted, the end of the caller's context. A task's own
// error crosses the process boundary as text, so errors.Is does not find the task's sentinels.
type Error struct {
	Status      Status
	Delivery    Delivery
	TaskID      uint64 // 0: the call took no slot, or that is unknown
	WorkerIndex int    // -1: no worker was chosen
	PID         int    // 0: no worker was chosen
	Message     string // the text of the task's error, or what is known about the worker
	Reason      Reason // why the worker ended, if its end lost the call; "": it lives, or that is unknown
	Err         error  // the cause; may be nil
}

// Error returns the message, the status, the delivery, the task and the worker.
func (e *Error) Error() string {
	msg := e.Message
	if msg == "" {
		msg = e.Status.Message()
	}
	s := fmt.Sprintf("task: %s (status %d, %s", msg, int(e.Status), e.Delivery)
	if e.TaskID > 0 {
		s += fmt.Sprintf(", task %d", e.TaskID)
	}
	if e.WorkerIndex >= 0 && e.PID > 0 {
		s += fmt.Sprintf(", worker %d pid %d", e.WorkerIndex, e.PID)
	}
	return s + ")"
}

// Unwrap returns the status and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Status}
	}
	return []error{e.Status, e.Err}
}

// Causes of an *Error with ErrProcessBusy and NotRun. ErrClosed is also the cause of an
// ErrSockTimeout if Client.Close, or Shutdown at the end of its context, ended a call in flight.
var (
	ErrClosed     = errors.New("the pool is closed")
	ErrNotStarted = errors.New("the pool is not started")
)

// A PanicError is what a task's OnException gets when its Run panicked:
//
//	type PanicError struct {
//		Value any    // what was passed to panic
//		Stack []byte // the goroutine's stack at the panic
//	}
//
// Error returns the value in words, without the stack. Unwrap returns the value if it is an error.
type PanicError = tasktype.PanicError

// refused returns the error of a call that failed before a worker was chosen.
func refused(s Status, cause error, format string, args ...any) *Error {
	return &Error{Status: s, Delivery: NotRun, WorkerIndex: -1, Message: fmt.Sprintf(format, args...), Err: cause}
}

func failed(f *client.Failure) *Error {
	e := &Error{
		Status:      f.Status,
		Delivery:    f.Delivery,
		TaskID:      f.TaskID,
		WorkerIndex: f.Index,
		PID:         f.PID,
		Message:     f.Message,
		Reason:      f.End.Reason,
		Err:         f.Err,
	}
	if errors.Is(f.Err, client.ErrClosed) {
		e.Err = ErrClosed
	}
	return e
}
