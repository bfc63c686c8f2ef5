package task

import (
	"errors"
	"fmt"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/supervisor"
)

// A Delivery is what is known of a failed call: what a caller needs before it
// tries again.
type Delivery int

const (
	MayHaveRun Delivery = iota // nothing is proved; the task may still be running
	NotRun                     // the task did not run and will not
	Ran                        // the task ran to its end
)

// String returns "may have run", "not run" or "ran".
func (d Delivery) String() string {
	switch d {
	case NotRun:
		return "not run"
	case Ran:
		return "ran"
	default:
		return "may have run"
	}
}

// An Error is a failed call: every call that fails returns one. As, Decode and
// the methods of a Func may return a decoding error instead; then the task ran,
// and its result is not what was asked for. errors.Is finds its Status, and its cause where
// there is one: ErrClosed, ErrNotStarted, the end of the caller's context. A
// task's own error crosses the process boundary as text, so errors.Is does not
// find the task's sentinels.
type Error struct {
	Status      Status
	Delivery    Delivery
	TaskID      uint64 // 0: the call took no slot, or that is not known
	WorkerIndex int    // -1: no worker was chosen
	PID         int    // 0: no worker was chosen
	Message     string // the task's own words, or what is known of the worker
	Reason      Reason // why the worker ended that was lost with the call; "": it lives, or that is not known
	Err         error  // the cause, when there is one
}

// Error names the message, the status, the delivery, the task and the worker.
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

// Causes inside an *Error with ErrProcessBusy and NotRun.
var (
	ErrClosed     = errors.New("the pool is closed")
	ErrNotStarted = errors.New("the pool is not started")
)

// A PanicError is what a task's OnException gets when its Run panicked.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the goroutine's stack at the panic
}

// Error returns the panic's value in words, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// refused is a call that failed before any worker was chosen.
func refused(s Status, cause error, format string, args ...any) *Error {
	return &Error{Status: s, Delivery: NotRun, WorkerIndex: -1, Message: fmt.Sprintf(format, args...), Err: cause}
}

func failed(f *client.Failure) *Error {
	e := &Error{
		Status:      Status(f.Status),
		Delivery:    deliveries[f.Delivery],
		TaskID:      f.TaskID,
		WorkerIndex: f.Index,
		PID:         f.PID,
		Message:     f.Message,
		Err:         f.Err,
	}
	if f.End.How != 0 {
		e.Reason = Reason(supervisor.Reason(f.End.How).String())
	}
	if errors.Is(f.Err, client.ErrClosed) {
		e.Err = ErrClosed
	}
	return e
}

var deliveries = [...]Delivery{client.MayHaveRun: MayHaveRun, client.NotRun: NotRun, client.Ran: Ran}
