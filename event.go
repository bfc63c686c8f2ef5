package task

import (
	"time"

	"github.com/taskd-go/task/internal/supervisor"
)

// A Reason says why something happened to a worker. The closed list stands in
// docs/operations.md; the same words are in the log and in errors.
type Reason string

// An Event is one change of a worker's state, or of the pool's.
type Event struct {
	Time       time.Time
	Kind       string // "started", "ready", "exited", …
	Reason     Reason
	Worker     Worker
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
			Kind:       e.Kind,
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
