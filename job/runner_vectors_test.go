package job

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type runnerCase struct {
	Name    string
	JobType string
	Handler *struct {
		Returns      string
		Throws       *string
		Error        *string
		Reason       string
		RetryAfterMs *int64
		SleepsMs     int64 `json:"sleeps_ms"`
		BusyMs       int64 `json:"busy_loops_ms"`
	}
	TimeoutMs           int64 `json:"timeout_ms"`
	Attempt             int
	EnvelopeMaxAttempts int
	Policy              vectorPolicy
	RequeueCallback     string `json:"requeue_callback"`
	DeadCallback        string `json:"dead_callback"`
	Expect              struct {
		Outcome   string
		Callbacks []struct {
			Call     string
			Attempt  int
			DelayMs  *int64
			Error    *string
			Contains string `json:"error_contains"`
		}
		LogEvents []string `json:"log_events"`
		Error     bool
	}
}

// handler does what the case says; a busy one ignores its context and loops until stop.
func (c runnerCase) handler(stop *atomic.Bool) Handler {
	if c.Handler == nil {
		return nil
	}
	return Func("t", func(context.Context, Envelope) Result {
		h := c.Handler
		time.Sleep(time.Duration(h.SleepsMs) * time.Millisecond)
		for h.BusyMs > 0 && !stop.Load() {
		}
		if h.Throws != nil {
			panic(*h.Throws)
		}
		var err error
		if h.Error != nil {
			err = errors.New(*h.Error)
		}
		switch {
		case h.Returns == "success":
			return Success()
		case h.Returns == "discard":
			return Discard(h.Reason)
		case h.Returns == "fail":
			return Fail(err)
		case h.RetryAfterMs != nil:
			return RetryAfter(err, time.Duration(*h.RetryAfterMs)*time.Millisecond)
		default:
			return Retry(err)
		}
	})
}

func TestRunnerVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct{ Cases []runnerCase }](t, "runner.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Name == "cpu_bound_overrun" { // real time: a loop does not let the bubble's clock move
				c.check(t)
				return
			}
			synctest.Test(t, func(t *testing.T) {
				c.check(t)
				time.Sleep(time.Second) // of the bubble's clock: an abandoned handler ends
			})
		})
	}
}

type call struct {
	name    string
	attempt int
	delay   time.Duration
	reason  error
	jobID   string
}

func (c runnerCase) check(t *testing.T) {
	logs := &logRecorder{}
	r := &Runner{Timeout: time.Duration(c.TimeoutMs) * time.Millisecond, Logger: slog.New(logs)}
	if c.Policy != (vectorPolicy{}) {
		r.Policy = c.Policy.policy()
	}
	e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: max(1, c.Attempt), MaxAttempts: c.EnvelopeMaxAttempts}
	if c.JobType != "" {
		e.JobType = c.JobType
	}
	if e.MaxAttempts == 0 {
		e.MaxAttempts = 5
	}
	var calls []call
	failure := errors.New("store is down")
	requeue := func(_ context.Context, next Envelope, delay time.Duration) error {
		calls = append(calls, call{"requeue", next.Attempt, delay, nil, next.JobID})
		if c.RequeueCallback != "" {
			return failure
		}
		return nil
	}
	dead := func(_ context.Context, failed Envelope, reason error) error {
		calls = append(calls, call{"dead", failed.Attempt, 0, reason, failed.JobID})
		if c.DeadCallback != "" {
			return failure
		}
		return nil
	}

	var stop atomic.Bool
	defer stop.Store(true)
	reg, err := NewRegistry()
	require.NoError(t, err)
	if h := c.handler(&stop); h != nil {
		reg, err = NewRegistry(h)
		require.NoError(t, err)
	}
	outcome, err := r.RunRegistered(t.Context(), reg, e, requeue, dead)

	if c.Expect.Error {
		require.ErrorIs(t, err, failure)
		assert.Equal(t, Unsettled, outcome)
		return
	}
	require.NoError(t, err)
	assert.Equal(t, c.Expect.Outcome, outcome.String())
	assert.Equal(t, c.Expect.LogEvents, logs.names())
	require.Len(t, calls, len(c.Expect.Callbacks))
	for i, want := range c.Expect.Callbacks {
		got := calls[i]
		assert.Equal(t, want.Call, got.name)
		assert.Equal(t, want.Attempt, got.attempt)
		assert.Equal(t, "J", got.jobID)
		if want.DelayMs != nil {
			assert.Equal(t, *want.DelayMs, got.delay.Milliseconds())
		}
		if want.Error != nil {
			assert.EqualError(t, got.reason, *want.Error)
		}
		if want.Contains != "" {
			assert.ErrorContains(t, got.reason, want.Contains)
		}
	}
}

// logRecorder keeps log records; each one is checked for what must not be in it.
type logRecorder struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logRecorder) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecorder) WithGroup(string) slog.Handler            { return l }
func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r.Clone())
	return nil
}

func (l *logRecorder) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := []string{}
	for _, r := range l.records {
		names = append(names, r.Message)
	}
	return names
}

// attrs of the record with that message.
func (l *logRecorder) attrs(t *testing.T, message string) map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Message == message {
			attrs := map[string]any{}
			r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value.Any(); return true })
			if message != "job.defer" { // which is no trouble yet
				assert.Equal(t, slog.LevelWarn, r.Level)
			}
			return attrs
		}
	}
	t.Fatalf("no log %q in %d records", message, len(l.records))
	return nil
}
