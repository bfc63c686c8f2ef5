package protocol

import "strconv"

// A Status is the reason of a refusal or a failure; 0 is none. It is an error
// itself, so that errors.Is(err, StatusBusy) asks for one.
type Status int

// The statuses of version 1. A worker sends all of them but StatusSockTimeout,
// which is a client's own word for a connect, send or receive that failed.
const (
	StatusOK               Status = 0
	StatusBusy             Status = -2
	StatusProtocol         Status = -3
	StatusIllegal          Status = -4
	StatusTaskError        Status = -5
	StatusExpired          Status = -6
	StatusSockTimeout      Status = -7
	StatusPackageTooLarge  Status = -8
	StatusResponseTooLarge Status = -9
)

// Message returns the status in words.
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

// Error returns the message and the number.
func (s Status) Error() string {
	return s.Message() + " (" + strconv.Itoa(int(s)) + ")"
}

// An Error is a frame, package or response that breaks the format.
type Error struct {
	Status Status
	ID     uint64 // the package's id where it could be read, else 0
	Text   string // names the value and the rule
}

// Error returns the status and what broke it.
func (e *Error) Error() string { return e.Status.Error() + ": " + e.Text }

// Unwrap returns the status.
func (e *Error) Unwrap() error { return e.Status }
