package job

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

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
