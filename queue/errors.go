package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

var (
	// ErrUnsupported says that the store cannot do what was asked for. Errors that wrap it name the
	// store.
	ErrUnsupported = backend.ErrUnsupported
	// ErrSetup says that the store cannot be used until somebody changes its setup, such as
	// applying migrations.
	ErrSetup = backend.ErrSetup
	// ErrNotFound says that there is no such job or dead letter.
	ErrNotFound = backend.ErrNotFound
	// ErrRestart is what Worker.Work returns after Queue.Restart.
	ErrRestart = errors.New("queue: restart requested")
	// ErrCancelled is the cause of the context of a handler whose job was cancelled. In events that
	// job is discarded.
	ErrCancelled = job.ErrCancelled
	// ErrInterrupted is the cause of the context of a handler that the end of its worker
	// interrupts.
	ErrInterrupted = errors.New("queue: the worker is stopping")
)

// An AbandonedError names the jobs whose handlers did not return in time. They still run; the jobs
// stay reserved until their leases lapse.
type AbandonedError struct{ IDs []string }

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("queue: %d jobs still run: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}
