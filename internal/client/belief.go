package client

import (
	"fmt"
	"strings"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// Delivery is what is known of a failed call.
type Delivery = tasktype.Delivery

const (
	MayHaveRun = tasktype.MayHaveRun
	NotRun     = tasktype.NotRun
	Ran        = tasktype.Ran
)

// A Failure is a failed call.
type Failure struct {
	Status   protocol.Status
	Delivery Delivery
	TaskID   uint64 // 0: it took no slot, or not known
	Index    int    // the worker's; -1: none was chosen
	PID      int    // the worker's; 0: not known
	Message  string
	Err      error           // the cause, when there is one
	End      sharedstate.End // of the worker that was lost with the call; zero: not known
}

// Error returns the status and the message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return fmt.Sprintf("status %d: %s", int(f.Status), f.Status.Message())
	}
	return fmt.Sprintf("status %d: %s", int(f.Status), f.Message)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// hardLimit begins the message of a -5 by which a hard time limit ended the wait, not the task.
const hardLimit = "time limit"

// refused returns what a worker's own answer says of the call.
func refused(s protocol.Status, message string) Delivery {
	switch s {
	case protocol.StatusBusy, protocol.StatusProtocol, protocol.StatusIllegal,
		protocol.StatusExpired, protocol.StatusPackageTooLarge:
		return NotRun
	case protocol.StatusTaskError:
		if strings.HasPrefix(message, hardLimit) {
			return MayHaveRun
		}
		return Ran
	case protocol.StatusResponseTooLarge:
		return Ran
	}
	return MayHaveRun
}

// An extent is how much of a frame the socket has taken.
type extent int

const (
	nothing extent = iota
	part
	whole
	unknown // a write is under way
)

// An ending is how a call without an answer ended.
type ending int

const (
	timedOut ending = iota
	eof
	reset
	broken // anything else: a response that cannot be read, a socket closed on our side
)

// evidence is what was seen of a call that got no answer.
type evidence struct {
	sent   extent
	end    ending
	shared bool // other calls were under way on the connection
	id     uint64
	at     int64 // when the connection was found to be lost
	// lastRead is the last id that the worker read whole on the connection, by its notice or its row.
	lastRead  uint64
	readKnown bool
	notBegun  bool // the worker's row says that the task had a slot and its turn had not come
}

// delivery says what the evidence proves.
func (e evidence) delivery() Delivery {
	switch {
	case e.sent == nothing || e.sent == part:
		return NotRun // the frame was never whole in a worker
	case e.end == timedOut || e.end == broken:
		return MayHaveRun
	case e.readKnown && e.id > e.lastRead, e.notBegun:
		return NotRun
	case e.readKnown:
		return MayHaveRun
	case e.end == reset && !e.shared && e.sent == whole:
		return NotRun // part of the frame was unread when the worker died
	}
	return MayHaveRun
}
