package tasktype

import "time"

// An EventKind says what happened. The list is closed; docs/operations.md has it too.
type EventKind string

// The kinds of events.
const (
	EventStarted       EventKind = "started"        // a process was spawned; the reason says why
	EventReady         EventKind = "ready"          // a worker accepts calls
	EventDraining      EventKind = "draining"       // a worker finishes its tasks and exits
	EventExited        EventKind = "exited"         // a process ended
	EventSpawnFailed   EventKind = "spawn_failed"   // fork or exec failed; Text is the error
	EventDegraded      EventKind = "degraded"       // an index failed several times in a row
	EventRecovered     EventKind = "recovered"      // a degraded index serves again
	EventSoftLimit     EventKind = "soft_limit"     // a task passed its soft limit; Text: a goroutine dump
	EventHardLimit     EventKind = "hard_limit"     // a task passed its hard limit
	EventSuspect       EventKind = "suspect"        // a worker failed ten times in a row by its own fault
	EventDrift         EventKind = "drift"          // counters and records of a worker disagree; Text says how
	EventSocketLost    EventKind = "socket_lost"    // a worker's socket file was removed; it is bound again
	EventReloaded      EventKind = "reloaded"       // a reload is complete
	EventReloadAborted EventKind = "reload_aborted" // a reload gave up; Text says why
	EventOutputDropped EventKind = "output_dropped" // output of the workers was dropped; Text says how much
	EventShutdown      EventKind = "shutdown"       // the drain of the pool began
)

// An Event is one change in the state of a worker or of the pool.
type Event struct {
	Time       time.Time     `json:"time"`
	Kind       EventKind     `json:"kind"`
	Reason     Reason        `json:"reason"`
	Worker     Worker        `json:"worker"` // Index -1: the pool as a whole
	Generation uint64        `json:"generation"`
	Signal     int           `json:"signal"`   // that ended the process; 0: none
	ExitCode   int           `json:"exitCode"` // of a process that exited
	Tasks      []RunningTask `json:"tasks"`    // what ran when the process ended, or the task past its limit
	Stderr     string        `json:"stderr"`   // the last lines that the process wrote to stderr
	Text       string        `json:"text"`
	Dropped    uint64        `json:"dropped"` // events that were dropped before this one
}

// A RunningTask is a task that was running at an Event.
type RunningTask struct {
	ID   uint64        `json:"id"`
	Name string        `json:"name"`
	Age  time.Duration `json:"age"` // since the task took its slot
}
