package backend

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnsupported says that the store cannot do what a call needs. Errors that wrap it name the
	// store.
	ErrUnsupported = errors.New("queue: not supported")
	// ErrSetup says that the store cannot be used until its setup is changed. A worker that gets it
	// ends.
	ErrSetup = errors.New("queue: the store is not set up for jobs")
	// ErrLost says that a delivery is no longer reserved for the worker that has its Receipt.
	ErrLost = errors.New("queue: the delivery is no longer reserved for this worker")
	// ErrNotFound says that there is no such job or dead letter.
	ErrNotFound = errors.New("queue: not found")
)

// Unsupported returns the error "STORE has no WHAT", which wraps ErrUnsupported.
func Unsupported(store, what string) error {
	return fmt.Errorf("%w: %s has no %s", ErrUnsupported, store, what)
}

// A DuplicateError says that a push was refused because its unique key is taken.
type DuplicateError struct {
	Key      string // as it was given to the option Unique; a store sets Message.UniqueKey
	Existing string // the id of the job that has the key; "" if that job has gone meanwhile
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("queue: unique key %q is taken by job %s", e.Key, e.Existing)
}

// A TakenError names dead letters that stay dead because their unique key is taken by a live job.
type TakenError struct{ IDs []string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("queue: %d dead letters stay, their unique keys are taken: %s", len(e.IDs),
		strings.Join(e.IDs, ", "))
}

// A ReplayError says why a dead letter stays dead: the store refused its job.
type ReplayError struct {
	ID  string // of the letter
	Err error
}

func (e *ReplayError) Error() string {
	return fmt.Sprintf("queue: dead letter %s stays: %v", e.ID, e.Err)
}

func (e *ReplayError) Unwrap() error { return e.Err }

// A ConfigError says which option is wrong, its value and the rule.
type ConfigError struct {
	Option string
	Value  any
	Rule   string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("queue: %s %v: %s", e.Option, e.Value, e.Rule)
}
