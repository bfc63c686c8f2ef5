package task

import "github.com/taskd-go/task/tasktype"

// An EventKind says what happened. The list is closed; docs/operations.md has it too.
type EventKind = tasktype.EventKind

// The kinds of events.
const (
	EventStarted       EventKind = tasktype.EventStarted       // a process was spawned; the reason says why
	EventReady         EventKind = tasktype.EventReady         // a worker accepts calls
	EventDraining      EventKind = tasktype.EventDraining      // a worker finishes its tasks and exits
	EventExited        EventKind = tasktype.EventExited        // a process ended
	EventSpawnFailed   EventKind = tasktype.EventSpawnFailed   // fork or exec failed; Text is the error
	EventDegraded      EventKind = tasktype.EventDegraded      // an index failed several times in a row
	EventRecovered     EventKind = tasktype.EventRecovered     // a degraded index serves again
	EventSoftLimit     EventKind = tasktype.EventSoftLimit     // a task passed its soft limit; Text: a goroutine dump
	EventHardLimit     EventKind = tasktype.EventHardLimit     // a task passed its hard limit
	EventSuspect       EventKind = tasktype.EventSuspect       // a worker failed ten times in a row by its own fault
	EventDrift         EventKind = tasktype.EventDrift         // counters and records of a worker disagree; Text says how
	EventSocketLost    EventKind = tasktype.EventSocketLost    // a worker's socket file was removed; it is bound again
	EventReloaded      EventKind = tasktype.EventReloaded      // a reload is complete
	EventReloadAborted EventKind = tasktype.EventReloadAborted // a reload gave up; Text says why
	EventOutputDropped EventKind = tasktype.EventOutputDropped // output of the workers was dropped; Text says how much
	EventShutdown      EventKind = tasktype.EventShutdown      // the drain of the pool began
)

// An Event is one change in the state of a worker or of the pool:
//
//	type Event struct {
//		Time       time.Time
//		Kind       EventKind
//		Reason     Reason
//		Worker     Worker // Index -1: the pool as a whole
//		Generation uint64
//		Signal     int           // that ended the process; 0: none
//		ExitCode   int           // of a process that exited
//		Tasks      []RunningTask // what ran when the process ended, or the task past its limit
//		Stderr     string        // the last lines that the process wrote to stderr
//		Text       string
//		Dropped    uint64 // events that were dropped before this one
//	}
type Event = tasktype.Event

// A RunningTask is a task that was running at an Event:
//
//	type RunningTask struct {
//		ID   uint64
//		Name string
//		Age  time.Duration // since the task took its slot
//	}
type RunningTask = tasktype.RunningTask

// A Worker names a worker process:
//
//	type Worker struct {
//		Index int
//		PID   int
//	}
type Worker = tasktype.Worker
