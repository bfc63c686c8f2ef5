package supervisor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/taskd-go/task/tasktype"
)

const (
	maxLoggedDump = 16 << 10               // bytes of a soft limit's dump in the log; the event has all of it
	maxEvents     = 1024                   // events that wait for OnEvent
	flushWithin   = 100 * time.Millisecond // bounds the delivery of the last events
)

// An eventQueue logs events and passes them to OnEvent, one at a time and in order. It has a
// goroutine of its own, so a slow OnEvent, or a log that blocks, does not hold up the supervisor.
type eventQueue struct {
	onEvent func(tasktype.Event)
	logger  *slog.Logger
	ended   chan struct{}

	mu      sync.Mutex // guards the fields below
	waiting chan tasktype.Event
	dropped uint64
	closed  bool
}

func newEventQueue(onEvent func(tasktype.Event), logger *slog.Logger) *eventQueue {
	if logger == nil {
		logger = slog.Default()
	}
	q := &eventQueue{
		onEvent: onEvent,
		logger:  logger,
		waiting: make(chan tasktype.Event, maxEvents),
		ended:   make(chan struct{}),
	}
	go q.run()
	return q
}

// put queues an event and never blocks. While maxEvents wait, it drops the event and counts it; the
// next queued event carries that count.
func (q *eventQueue) put(e tasktype.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e.Time, e.Dropped = time.Now(), q.dropped
	select {
	case q.waiting <- e:
		q.dropped = 0
	default:
		q.dropped++
	}
}

func (q *eventQueue) run() {
	defer close(q.ended)
	for e := range q.waiting {
		q.log(e)
		if q.onEvent != nil {
			q.onEvent(e)
		}
	}
}

func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	close(q.waiting)
}

// flush waits until the last event is delivered, at most for flushWithin, because its caller may be
// OnEvent itself.
func (q *eventQueue) flush() {
	limit := time.NewTimer(flushWithin)
	defer limit.Stop()
	select {
	case <-q.ended:
	case <-limit.C:
	}
}

func (q *eventQueue) log(e tasktype.Event) {
	attrs := []slog.Attr{slog.String("reason", string(e.Reason))}
	if e.Worker.Index >= 0 {
		attrs = append(
			attrs,
			slog.Int("worker", e.Worker.Index),
			slog.Int("pid", e.Worker.PID),
			slog.Uint64("generation", e.Generation),
		)
	}
	if e.Signal != 0 {
		attrs = append(attrs, slog.Int("signal", e.Signal))
	}
	if e.ExitCode != 0 {
		attrs = append(attrs, slog.Int("exit", e.ExitCode))
	}
	for _, t := range e.Tasks {
		attrs = append(attrs, slog.Group("task", "id", t.ID, "name", t.Name, "age", t.Age.Round(time.Millisecond)))
	}
	var dump string
	if e.Kind == tasktype.EventSoftLimit {
		dump, e.Text = e.Text[:min(len(e.Text), maxLoggedDump)], ""
	}
	if planned(e.Reason) {
		e.Stderr = "" // the log has it already, and it explains nothing
	}
	for _, text := range []struct{ key, value string }{{"text", e.Text}, {"stderr", e.Stderr}} {
		if text.value != "" {
			attrs = append(attrs, slog.String(text.key, text.value))
		}
	}
	if e.Dropped > 0 {
		attrs = append(attrs, slog.Uint64("dropped", e.Dropped))
	}
	q.logger.LogAttrs(context.Background(), level(e), "worker pool: "+string(e.Kind), attrs...)
	if dump != "" {
		q.logger.LogAttrs(
			context.Background(),
			slog.LevelInfo,
			"worker pool: what the worker was doing",
			slog.Int("worker", e.Worker.Index),
			slog.Int("pid", e.Worker.PID),
			slog.String("dump", dump),
		)
	}
}

// level returns LevelWarn for what a person should look at, and LevelError for what probably ends
// only when a person acts.
func level(e tasktype.Event) slog.Level {
	switch e.Kind {
	case tasktype.EventDegraded, tasktype.EventReloadAborted:
		return slog.LevelError
	case tasktype.EventSpawnFailed,
		tasktype.EventSoftLimit,
		tasktype.EventHardLimit,
		tasktype.EventSuspect,
		tasktype.EventDrift,
		tasktype.EventSocketLost,
		tasktype.EventOutputDropped:
		return slog.LevelWarn
	case tasktype.EventExited:
		if !planned(e.Reason) {
			return slog.LevelWarn
		}
	case tasktype.EventShutdown, tasktype.EventReloaded, tasktype.EventRecovered:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// planned reports whether an end for r was asked for.
func planned(r tasktype.Reason) bool {
	switch r {
	case tasktype.ReasonDrained,
		tasktype.ReasonRecycledTasks,
		tasktype.ReasonRecycledAge,
		tasktype.ReasonRecycledMemory,
		tasktype.ReasonReloaded,
		tasktype.ReasonReloadAborted,
		tasktype.ReasonSocketLost,
		tasktype.ReasonShutdown:
		return true
	}
	return false
}
