package tasktype

import (
	"fmt"
	"time"
)

// Info tells a running task about itself.
type Info struct {
	TaskID      uint64            // > 0, from one shared counter: a later call's id is larger
	WorkerIndex int               // 0 … WorkerNum-1
	Deadline    time.Time         // the caller's; it informs and does not end the context; zero: none
	Meta        map[string]string // what the caller sent with WithMeta
}

// A PanicError is the error of a task whose Run panicked.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the goroutine's stack at the panic
}

// Error returns the panic's value in words, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
