package job

import (
	"context"
	"fmt"
	"log/slog"
)

// LogDeadLetters is the store of the driver log_only: it logs a warning for each letter, without
// its payload, and stores none.
type LogDeadLetters struct{ Logger *slog.Logger } // nil: slog.Default()

// Put implements DeadLetters.
func (l LogDeadLetters) Put(ctx context.Context, d DeadLetter) (string, error) {
	d = stamped(d)
	logger := l.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.WarnContext(ctx, "job.dead_letter", "jobId", d.Job.JobID, "jobType", d.Job.JobType, "queue", d.Queue,
		"attempt", d.Job.Attempt, "reason", d.Reason, "error", d.Error)
	return d.ID, nil
}

// Page implements DeadLetters.
func (LogDeadLetters) Page(context.Context, string, string, int) ([]DeadLetter, string, error) {
	return nil, "", nil
}

// Get implements DeadLetters.
func (LogDeadLetters) Get(_ context.Context, id string) (DeadLetter, error) {
	return DeadLetter{}, fmt.Errorf("%w: %s: log_only stores none", ErrNoDeadLetter, id)
}

// Remove implements DeadLetters.
func (LogDeadLetters) Remove(context.Context, ...string) (int, error) { return 0, nil }

// Len implements DeadLetters.
func (LogDeadLetters) Len(context.Context, string) (int, error) { return 0, nil }
