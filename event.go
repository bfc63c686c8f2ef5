package task

import (
	"time"

	"github.com/taskd-go/task/internal/supervisor"
)

// An EventKind says what happened. The list below is closed and stands in
// docs/operations.md too.
type EventKind string

// The kinds of events.
const (
	EventStarted       EventKind = "started"        // a process was spawned; the reason says why
	EventReady         EventKind = "ready"          // a worker accepts calls
	EventDraining      EventKind = "draining"       // a worker was told, or decided, to finish its tasks and go
	EventExited        EventKind = "exited"         // a process is gone
	EventSpawnFailed   EventKind = "spawn_failed"   // fork or exec failed; Text is the error
	EventDegraded      EventKind = "degraded"       // an index failed several times in a row
	EventRecovered     EventKind = "recovered"      // an index that was degraded serves again
	EventSoftLimit     EventKind = "soft_limit"     // a task's soft limit passed; Text is a dump of the worker's goroutines
	EventHardLimit     EventKind = "hard_limit"     // a task's hard limit passed
	EventSuspect       EventKind = "suspect"        // a worker failed everything at once and is set aside
	EventDrift         EventKind = "drift"          // the counters and the records of a worker disagree; Text says how
	EventSocketLost    EventKind = "socket_lost"    // a worker's socket file was removed; it is bound anew
	EventReloaded      EventKind = "reloaded"       // a reload is complete
	EventReloadAborted EventKind = "reload_aborted" // a reload gave up; Text says why
	EventOutputDropped EventKind = "output_dropped" // output of the workers was dropped; Text says how much
	EventShutdown      EventKind = "shutdown"       // the drain of the pool began
)

// An Event is one change of a worker's state, or of the pool's.
type Event struct {
	Time       time.Time
	Kind       EventKind
	Reason     Reason
	Worker     Worker // Index -1: the pool as a whole
	Generation uint64
	Signal     int           // that ended the process; 0: none
	ExitCode   int           // of a process that exited
	Tasks      []RunningTask // what was running when the process ended
	Stderr     string        // the last lines that the process wrote there
	Text       string
	Dropped    uint64 // events that were dropped before this one
}

// A RunningTask is a task that was running at an Event.
type RunningTask struct {
	ID   uint64
	Name string
	Age  time.Duration
}

func eventHandler(fn func(Event)) func(supervisor.Event) {
	if fn == nil {
		return nil
	}
	return func(e supervisor.Event) {
		out := Event{
			Time:       e.Time,
			Kind:       EventKind(e.Kind),
			Reason:     Reason(e.Reason.String()),
			Worker:     Worker{Index: e.Index, PID: e.PID},
			Generation: e.Generation,
			Signal:     e.Signal,
			ExitCode:   e.ExitCode,
			Stderr:     e.Stderr,
			Text:       e.Text,
			Dropped:    e.Dropped,
		}
		for _, t := range e.Tasks {
			out.Tasks = append(out.Tasks, RunningTask{ID: t.TaskID, Name: t.Name, Age: e.Age(t)})
		}
		fn(out)
	}
}
