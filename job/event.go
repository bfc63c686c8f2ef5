package job

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// An EventKind says what happened to a job; the list is closed.
type EventKind string

// The kinds of event.
const (
	EventStarted   EventKind = "started" // its handler is about to run
	EventSucceeded EventKind = "success" // from here to unsettled: the outcomes, under their names
	EventRequeued  EventKind = "requeued"
	EventDead      EventKind = "dead"
	EventDiscarded EventKind = "discarded"
	EventDeferred  EventKind = "deferred"
	EventSkipped   EventKind = "skipped"
	EventUnsettled EventKind = "unsettled" // also if a callback of Run failed
	EventAbandoned EventKind = "abandoned" // its handler still runs after the time limit
	EventReturned  EventKind = "returned"  // an abandoned handler returned; its result is ignored
	EventReplayed  EventKind = "replayed"  // a dead letter was published again and removed
	EventSetAside  EventKind = "set_aside" // a dead letter could not be replayed and was marked as broken
)

// An Event is one change of a job's state: what happened, when, by which Runner, and why. It never
// holds the payload.
type Event struct {
	Kind    EventKind
	By      string // the Runner's Name
	At      time.Time
	JobID   string
	JobType string
	Attempt int           // of the run that changed it
	Delay   time.Duration // until it runs again, if it was requeued or deferred
	Took    time.Duration // since the run began
	Reason  Reason        // empty if the kind says it all
	Err     error
}

func (r *Runner) event(ev Event, e Envelope) {
	if r.OnEvent == nil {
		return
	}
	ev.By, ev.At, ev.JobID, ev.JobType, ev.Attempt = r.Name, time.Now(), e.JobID, e.JobType, e.Attempt
	r.OnEvent(ev)
}

// report calls OnEvent for a decision, and logs one that a person may want to look into.
func (r *Runner) report(ctx context.Context, e Envelope, d Decision) {
	if d.Abandoned != nil {
		r.event(Event{Kind: EventAbandoned, Took: d.Took, Reason: d.Reason, Err: d.Err}, e)
	}
	r.event(Event{Kind: outcomeNames[d.Outcome], Delay: d.Delay, Took: d.Took, Reason: d.Reason, Err: d.Err}, e)

	if d.Reason == ReasonTimeout {
		r.log(ctx, slog.LevelWarn, "job.timeout", e, d)
	}
	delay := slog.Int64("delayMs", d.Delay.Milliseconds())
	switch {
	case d.Outcome == Requeued:
		r.log(ctx, slog.LevelWarn, "job.retry", e, d, slog.Int("nextAttempt", d.Envelope.Attempt), delay)
	case d.Outcome == Dead:
		r.log(ctx, slog.LevelWarn, "job.dead", e, d)
	case d.Outcome == Deferred && d.Reason != ReasonInterrupted && d.Err != nil:
		r.log(ctx, slog.LevelInfo, "job.defer", e, d, delay)
	case d.Outcome == Unsettled:
		r.log(ctx, slog.LevelWarn, "job.unsettled", e, d)
	}
}

// log never writes the payload.
func (r *Runner) log(ctx context.Context, level slog.Level, message string, e Envelope, d Decision, more ...slog.Attr) {
	logger := r.Logger
	if logger == nil {
		logger = slog.Default()
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("jobId", e.JobID), slog.String("jobType", e.JobType), slog.Int("attempt", e.Attempt),
		slog.String("reason", string(d.Reason)), slog.String("error", d.Err.Error()),
	}
	var p *PanicError
	if message != "job.timeout" && errors.As(d.Err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	logger.LogAttrs(ctx, level, message, append(attrs, more...)...)
}
