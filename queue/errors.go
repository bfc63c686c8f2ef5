package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

var (
	// ErrUnsupported says that the store cannot do what a call needs. Errors that wrap it name the
	// store.
	ErrUnsupported = backend.ErrUnsupported
	// ErrSetup says that the store cannot be used until its setup is changed, for example by
	// applying migrations.
	ErrSetup = backend.ErrSetup
	// ErrNotFound says that there is no such job or dead letter.
	ErrNotFound = backend.ErrNotFound
	// ErrRestart is what Worker.Work returns after Queue.Restart.
	ErrRestart = errors.New("queue: restart requested")
	// ErrCancelled is the cause of a handler's context when Queue.Cancel removed its job. The job's
	// last event is EventDiscarded.
	ErrCancelled = job.ErrCancelled
	// ErrInterrupted is the cause of a handler's context when its worker stops and no longer waits
	// for the job.
	ErrInterrupted = errors.New("queue: the worker is stopping")
)

// An AbandonedError names the jobs whose handlers did not return in time. The handlers still run,
// and the jobs stay reserved until their leases end.
type AbandonedError struct{ IDs []string }

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("queue: %d jobs still run: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}
