package job

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// MemoryDeadLetters stores dead letters in memory. They end with the process.
type MemoryDeadLetters struct {
	mu    sync.Mutex
	index *letterIndex[DeadLetter]
}

// NewMemoryDeadLetters returns an empty store.
func NewMemoryDeadLetters() *MemoryDeadLetters {
	return &MemoryDeadLetters{index: newLetterIndex[DeadLetter]()}
}

// Put implements DeadLetters.
func (m *MemoryDeadLetters) Put(_ context.Context, d DeadLetter) (string, error) {
	d = stamped(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index.put(d.ID, d.Queue, d)
	return d.ID, nil
}

// Page implements DeadLetters.
func (m *MemoryDeadLetters) Page(_ context.Context, queue, cursor string, limit int) ([]DeadLetter, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries, next, err := m.index.page(queue, cursor, limit)
	page := make([]DeadLetter, len(entries))
	for i, e := range entries {
		page[i] = e.value
	}
	return page, next, err
}

// Get implements DeadLetters.
func (m *MemoryDeadLetters) Get(_ context.Context, id string) (DeadLetter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.index.get(id)
	if e == nil {
		return DeadLetter{}, fmt.Errorf("%w: %s", ErrNoDeadLetter, id)
	}
	return e.value, nil
}

// Remove implements DeadLetters.
func (m *MemoryDeadLetters) Remove(_ context.Context, ids ...string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.index.len("")
	for _, id := range ids {
		m.index.remove(id)
	}
	return before - m.index.len(""), nil
}

// Len implements DeadLetters.
func (m *MemoryDeadLetters) Len(_ context.Context, queue string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index.len(queue), nil
}

// stamped returns d with an id, a queue and a time.
func stamped(d DeadLetter) DeadLetter {
	now := time.Now()
	if d.ID == "" {
		d.ID = newID("dead", now)
	}
	if d.At == 0 {
		d.At = now.Unix()
	}
	d.Queue = orDefault(d.Queue)
	return d
}

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
