package tasktest

import (
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task"
)

// maxEvents is how many events wait for a slow OnEvent.
const maxEvents = 1024

// events hands events to OnEvent, one at a time, in order, on a goroutine of its own.
type events struct {
	waiting chan task.Event
	ended   chan struct{}

	mu      sync.Mutex
	dropped uint64
	closed  bool
}

func newEvents(onEvent func(task.Event)) *events {
	e := &events{waiting: make(chan task.Event, maxEvents), ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		for ev := range e.waiting {
			if onEvent != nil {
				onEvent(ev)
			}
		}
	}()
	return e
}

// worker reports a change in the state of a worker. ev has the further fields.
func (e *events) worker(kind task.EventKind, why task.Reason, index int, generation uint64, ev task.Event) {
	ev.Worker = task.Worker{Index: index, PID: os.Getpid()}
	ev.Generation = generation
	e.put(kind, why, ev)
}

// pool reports a change in the state of the pool.
func (e *events) pool(kind task.EventKind, why task.Reason) {
	e.put(kind, why, task.Event{Worker: task.Worker{Index: -1}})
}

func (e *events) put(kind task.EventKind, why task.Reason, ev task.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	ev.Time, ev.Kind, ev.Reason, ev.Dropped = time.Now(), kind, why, e.dropped
	select {
	case e.waiting <- ev:
		e.dropped = 0
	default:
		e.dropped++
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	close(e.waiting)
}

// wait returns when OnEvent has returned for the last event.
func (e *events) wait() { <-e.ended }
