package client

import (
	"strings"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/tasktype"
)

// Delivery is what is known about the run of a failed call.
type Delivery = tasktype.Delivery

const (
	MayHaveRun = tasktype.MayHaveRun
	NotRun     = tasktype.NotRun
	Ran        = tasktype.Ran
)

// hardLimit begins the message of a -5 that reports a hard time limit. It ends the call, and may
// leave the task running.
const hardLimit = "time limit"

// deliveryOf returns what an answer with status s says about the run of the call.
func deliveryOf(s protocol.Status, message string) Delivery {
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

// An extent is how much of a frame the socket took.
type extent int

const (
	sentNothing extent = iota
	sentPart
	sentWhole
	sentUnknown // a write is in progress
)

// An ending is how a call without an answer ended.
type ending int

const (
	timedOut ending = iota
	eof
	reset
	broken // any other end: an unreadable response, a socket that was closed on this side
)

// evidence is what was observed of a call that got no answer.
type evidence struct {
	sent   extent
	end    ending
	shared bool // other calls were in flight on the connection
	id     uint64
	at     int64 // when the loss of the connection was noticed
	// lastRead is the id of the last package that the worker read whole on the connection, from its
	// notice or its row.
	lastRead  uint64
	readKnown bool
	notBegun  bool // the worker's row says that the task had a slot and had not begun
}

// delivery returns what the evidence proves.
func (e evidence) delivery() Delivery {
	switch {
	case e.sent == sentNothing || e.sent == sentPart:
		return NotRun // no worker got the whole frame
	case e.end == timedOut || e.end == broken:
		return MayHaveRun
	case e.readKnown && e.id > e.lastRead, e.notBegun:
		return NotRun
	case e.readKnown:
		return MayHaveRun
	case e.end == reset && !e.shared && e.sent == sentWhole:
		return NotRun // part of the frame was unread when the worker died
	}
	return MayHaveRun
}
