package protocol

import "strconv"

// A Status is the reason for a refusal or a failure, or 0 for success. It implements error, so that
// errors.Is(err, StatusBusy) tests for one reason.
type Status int

// The statuses of version 1. A worker never sends StatusSockTimeout.
const (
	StatusOK               Status = 0
	StatusBusy             Status = -2 // no slot is free, or the worker drains
	StatusProtocol         Status = -3 // the frame is malformed
	StatusIllegal          Status = -4 // the package, its task or its payload is invalid
	StatusTaskError        Status = -5 // the task failed
	StatusExpired          Status = -6 // the deadline passed before the task began
	StatusSockTimeout      Status = -7 // a client could not connect, send or receive in time
	StatusPackageTooLarge  Status = -8 // the frame of the package is over the limit
	StatusResponseTooLarge Status = -9 // the task ran; the frame of its response is over the limit
)

// Message returns the status in words, such as "task process busy".
func (s Status) Message() string {
	switch s {
	case StatusOK:
		return "ok"
	case StatusBusy:
		return "task process busy"
	case StatusProtocol:
		return "task package protocol error"
	case StatusIllegal:
		return "task package illegal"
	case StatusTaskError:
		return "task run error"
	case StatusExpired:
		return "task package expire"
	case StatusSockTimeout:
		return "task sock timeout"
	case StatusPackageTooLarge:
		return "task package too large"
	case StatusResponseTooLarge:
		return "task response too large"
	}
	return "unknown task status"
}

// Error returns the message and the number, such as "task process busy (-2)".
func (s Status) Error() string {
	return s.Message() + " (" + strconv.Itoa(int(s)) + ")"
}

// An Error describes a frame, package or response that breaks the format.
type Error struct {
	Status Status
	ID     uint64 // the package's id, or 0 if it could not be read
	Text   string // names the invalid value and the rule
}

// Error returns the status and the text.
func (e *Error) Error() string { return e.Status.Error() + ": " + e.Text }

// Unwrap returns the status.
func (e *Error) Unwrap() error { return e.Status }
