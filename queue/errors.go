package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/taskd-go/task/job"
)

var (
	// ErrSchema says that the database lacks the queue's tables, or has older ones.
	ErrSchema = errors.New("the queue's tables are missing or old; apply them with: taskd queue migrate")
	// ErrNotFound says that there is no such job or dead letter.
	ErrNotFound = errors.New("queue: not found")
	// ErrRestart is what Worker.Work returns after Queue.Restart.
	ErrRestart = errors.New("queue: restart was asked for")
	// ErrCancelled is the cause of the context of a handler whose job was cancelled. In events that job is discarded.
	ErrCancelled = job.ErrCancelled
	// ErrInterrupted is the cause of the context of a handler that the end of its worker interrupts.
	ErrInterrupted = errors.New("queue: worker is going")
	// ErrSync is what operations return that need a database, on a Queue of NewSync.
	ErrSync = errors.New("queue: the sync driver keeps no jobs")
)

// A DuplicateError says that a push was refused because its unique key is taken. Existing is the job that has it,
// "" if it went meanwhile.
type DuplicateError struct {
	Key      string
	Existing string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("queue: unique key %q is taken by job %s", e.Key, e.Existing)
}

// A TakenError names dead letters that stay dead because their unique key is taken by a live job.
type TakenError struct{ IDs []string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("queue: %d dead letters stay, their unique keys are taken: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}

// A ReplayError says why a dead letter stays dead: the database does not take its job.
type ReplayError struct {
	ID  string // of the letter
	Err error
}

func (e *ReplayError) Error() string {
	return fmt.Sprintf("queue: dead letter %s stays: %v", e.ID, e.Err)
}
func (e *ReplayError) Unwrap() error { return e.Err }

// An AbandonedError names the jobs whose handlers did not return in time. They still run; their rows stay reserved
// until those leases lapse.
type AbandonedError struct{ IDs []string }

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("queue: %d jobs still run: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}

// A ConfigError says which option is wrong, its value and the rule.
type ConfigError struct {
	Option string
	Value  any
	Rule   string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("queue: %s %v: %s", e.Option, e.Value, e.Rule)
}
