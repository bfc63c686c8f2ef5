package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/textcut"
)

func envelope(t *testing.T, attempt, maxAttempts int) Envelope {
	t.Helper()
	p := DefaultRetryPolicy()
	p.MaxAttempts = maxAttempts
	e, err := New("t", map[string]string{"secret": "tell nobody"}, map[string]any{"traceparent": "00-ab-cd-01"}, p)
	require.NoError(t, err)
	return e.WithAttempt(attempt)
}

func answering(r Result) Handler {
	return Func("t", func(context.Context, Envelope) Result { return r })
}

// untilFinished feeds what is requeued back, as a transport does, until the job is finished.
func untilFinished(r *Runner, h Handler, e Envelope) (d Decision, runs int) {
	for {
		d = r.Decide(context.Background(), h, e)
		runs++
		if d.Outcome != Requeued && d.Outcome != Deferred {
			return d, runs
		}
		if d.Abandoned != nil {
			<-d.Abandoned
		}
		time.Sleep(d.Delay)
		e = d.Envelope
	}
}

// A handler that returns when its context ends is seen as timed out too, and is not abandoned when
// it returns in time.
func TestAHandlerThatReturnsWithItsContextTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
		h := Func("t", func(ctx context.Context, _ Envelope) Result {
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, time.Second, time.Until(deadline))
			<-ctx.Done()
			return Retry(fmt.Errorf("query: %w", ctx.Err()))
		})
		d := r.Decide(t.Context(), h, envelope(t, 1, 2))
		assert.Equal(t, ReasonTimeout, d.Reason)
		assert.ErrorContains(t, d.Err, "timed out after 1s")
	})
}

func TestADeferralEndsAtItsMaxAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := &logRecorder{}
		r := &Runner{Logger: slog.New(logs)}
		e := envelope(t, 1, 5)
		time.Sleep(48 * time.Hour) // being old is no deferral
		start := time.Now()
		d, _ := untilFinished(r, answering(Defer(time.Hour).WithErr(errors.New("store is down"))), e)
		assert.Equal(t, Dead, d.Outcome)
		assert.Equal(t, ReasonDeferred, d.Reason)
		assert.ErrorContains(t, d.Err, "store is down")
		assert.Equal(t, 24*time.Hour, time.Since(start))
		assert.Equal(t, int64(time.Hour/time.Millisecond), logs.attrs(t, "job.defer")["delayMs"])

		letter := NewDeadLetter("", d.Envelope, d.Err)
		assert.NotContains(t, letter.Job.Meta, MetaDeferredSince)
	})
}

func TestARunInBetweenStartsTheDeferAgeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{MaxDeferAge: time.Hour, Logger: slog.New(slog.DiscardHandler)}
		d := r.Decide(t.Context(), answering(Defer(time.Minute)), envelope(t, 1, 5))
		require.Contains(t, d.Envelope.Meta, MetaDeferredSince)
		time.Sleep(2 * time.Hour)
		d = r.Decide(t.Context(), answering(Retry(nil)), d.Envelope)
		require.Equal(t, Requeued, d.Outcome)
		d = r.Decide(t.Context(), answering(Defer(time.Minute)), d.Envelope)
		assert.Equal(t, Deferred, d.Outcome)
	})
}

func TestANewerEnvelopeWaitsForANewerProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := Decode([]byte(`{"v":2,"jobType":"t","jobId":"J"}`))
		require.NoError(t, err)
		r := &Runner{Logger: slog.New(slog.DiscardHandler)}
		h := Func("t", func(context.Context, Envelope) Result { t.Error("it ran"); return Success() })
		d := r.Decide(t.Context(), h, e)
		assert.Equal(t, Deferred, d.Outcome)
		assert.Equal(t, ReasonNewer, d.Reason)
		assert.Equal(t, 2, d.Envelope.V)
		assert.Equal(t, 1, d.Envelope.Attempt)

		d, runs := untilFinished(r, h, e)
		assert.Equal(t, Dead, d.Outcome)
		assert.Equal(t, ReasonDeferred, d.Reason)
		assert.Equal(t, 24*60+1, runs)
	})
}

func TestALostLeaseDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, result := range []Result{Retry(nil), Fail(nil), Defer(0), FromError(context.Canceled)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		h := Func("t", func(context.Context, Envelope) Result { cancel(ErrLeaseLost); return result })
		called := func() error { t.Error("a callback was called"); return nil }
		outcome, err := (&Runner{Logger: slog.New(slog.DiscardHandler)}).Run(ctx, h, envelope(t, 1, 5),
			func(context.Context, Envelope, time.Duration) error { return called() },
			func(context.Context, Envelope, error) error { return called() })
		assert.Equal(t, Unsettled, outcome)
		assert.ErrorIs(t, err, ErrLeaseLost)
	}
}

func TestASuccessAfterTheLeaseWasLostIsASuccess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h := Func("t", func(context.Context, Envelope) Result { cancel(ErrLeaseLost); return Success() })
	assert.Equal(t, Succeeded, (&Runner{}).Decide(ctx, h, envelope(t, 1, 5)).Outcome)
}

func TestPanicsAreRetriesAndLayersLetGo(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprintf("limit %s", limit), func(t *testing.T) {
			logs := &logRecorder{}
			released := false
			var seen Result
			layer := func(next HandleFunc) HandleFunc {
				return func(ctx context.Context, e Envelope) Result {
					seen = next(ctx, e) // no defer: an unguarded panic would pass the release by
					released = true
					return seen
				}
			}
			r := &Runner{Middleware: []Middleware{layer}, Timeout: limit, Logger: slog.New(logs)}
			cause := errors.New("boom")
			d := r.Decide(t.Context(), Func("t", func(context.Context, Envelope) Result { panic(cause) }), envelope(t, 1, 2))
			assert.True(t, released)
			assert.True(t, seen.Failed())
			assert.Equal(t, Requeued, d.Outcome)
			assert.Equal(t, ReasonPanic, d.Reason)
			assert.EqualError(t, d.Err, "boom")
			assert.ErrorIs(t, d.Err, cause)
			assert.Contains(t, logs.attrs(t, "job.retry")["stack"], "TestPanicsAreRetries")

			r.Middleware = []Middleware{func(HandleFunc) HandleFunc {
				return func(context.Context, Envelope) Result { panic("in the layer") }
			}}
			d = r.Decide(t.Context(), answering(Success()), envelope(t, 2, 2))
			assert.Equal(t, Dead, d.Outcome)
			assert.Equal(t, ReasonPanic, d.Reason)
			assert.EqualError(t, d.Err, "in the layer")
		})
	}
}

func TestAHandlerThatEndsItsGoroutineHasNoResult(t *testing.T) {
	t.Parallel()
	r := &Runner{Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	h := Func("t", func(context.Context, Envelope) Result { runtime.Goexit(); return Success() })
	d := r.Decide(t.Context(), h, envelope(t, 1, 2))
	assert.Equal(t, Requeued, d.Outcome)
	assert.EqualError(t, d.Err, "no result")
}

func TestAHandlerWithALimitRunsByGo(t *testing.T) {
	t.Parallel()
	started := 0
	r := &Runner{Timeout: time.Minute, Go: func(f func()) { started++; go f() }}
	assert.Equal(t, Succeeded, r.Decide(t.Context(), answering(Success()), envelope(t, 1, 1)).Outcome)
	assert.Equal(t, 1, started)
}

func TestLogsNeverHoldThePayload(t *testing.T) {
	t.Parallel()
	logs := &logRecorder{}
	r := &Runner{Logger: slog.New(logs)}
	r.Decide(t.Context(), answering(Retry(errors.New("down"))), envelope(t, 1, 3))
	slow := &DeadError{Reason: ReasonTimeout, Err: errors.New("too slow")}
	r.Decide(t.Context(), answering(Retry(slow)), envelope(t, 3, 3))
	assert.Equal(t, []string{"job.retry", "job.timeout", "job.dead"}, logs.names())
	retry := logs.attrs(t, "job.retry")
	for _, name := range []string{"jobId", "jobType", "attempt", "nextAttempt", "delayMs", "error", "reason"} {
		assert.Contains(t, retry, name)
	}
	for _, rec := range logs.records {
		rec.Attrs(func(a slog.Attr) bool {
			assert.NotContains(t, a.Value.String(), "tell nobody", rec.Message)
			return true
		})
	}
}

func TestCallbacksOutliveTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	h := Func("t", func(context.Context, Envelope) Result { cancel(); return Fail(errors.New("no")) })
	outcome, err := (&Runner{Logger: slog.New(slog.DiscardHandler)}).Run(ctx, h, envelope(t, 1, 2), nil,
		func(ctx context.Context, _ Envelope, reason error) error {
			_, limited := ctx.Deadline()
			assert.True(t, limited)
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "kept", ctx.Value(key{}))
			var dead *DeadError
			require.ErrorAs(t, reason, &dead)
			assert.Equal(t, ReasonFailed, dead.Reason)
			return nil
		})
	require.NoError(t, err)
	assert.Equal(t, Dead, outcome)
}

type key struct{}

func TestACallbackThatPanicsOrIsMissingLeavesTheJobUnsettled(t *testing.T) {
	t.Parallel()
	r := &Runner{Logger: slog.New(slog.DiscardHandler)}
	var last Event
	r.OnEvent = func(ev Event) { last = ev }
	for name, requeue := range map[string]RequeueFunc{
		"panics":  func(context.Context, Envelope, time.Duration) error { panic("store") },
		"missing": nil,
	} {
		outcome, err := r.Run(t.Context(), answering(Retry(nil)), envelope(t, 1, 2), requeue, nil)
		assert.Equal(t, Unsettled, outcome, name)
		assert.Error(t, err, name)
		assert.Equal(t, EventUnsettled, last.Kind, name)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	wrapped := fmt.Errorf("wrapped: %w", Permanent(cause))
	tests := []struct {
		name   string
		result Result
		kind   Kind
		text   string
		delay  time.Duration
		given  bool
		failed bool
	}{
		{"zero", Result{}, KindRetry, "no result", 0, false, true},
		{"success", Success(), KindSuccess, "", 0, false, false},
		{"retry", Retry(cause), KindRetry, "cause", 0, false, true},
		{"retry at once", RetryAfter(cause, 0), KindRetry, "cause", 0, true, true},
		{"retry in the past", RetryAfter(nil, -time.Second), KindRetry, "", 0, true, true},
		{"fail", Fail(cause), KindFail, "cause", 0, false, true},
		{"discard", Discard("stale"), KindDiscard, "stale", 0, false, false},
		{"defer", Defer(time.Second), KindDefer, "", time.Second, true, false},
		{"defer with a reason", Defer(time.Second).WithErr(cause), KindDefer, "cause", time.Second, true, false},
		{"skip", Skip("held"), KindSkip, "held", 0, false, false},
		{"no error", FromError(nil), KindSuccess, "", 0, false, false},
		{"an error", FromError(cause), KindRetry, "cause", 0, false, true},
		{"a permanent error", FromError(wrapped), KindFail, "wrapped: cause", 0, false, true},
		{"a permanent nil", FromError(Permanent(nil)), KindSuccess, "", 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.kind, tt.result.Kind())
			if tt.text == "" {
				assert.NoError(t, tt.result.Err())
			} else {
				assert.EqualError(t, tt.result.Err(), tt.text)
			}
			delay, given := tt.result.Delay()
			assert.Equal(t, tt.delay, delay)
			assert.Equal(t, tt.given, given)
			assert.Equal(t, tt.failed, tt.result.Failed())
		})
	}
	assert.ErrorIs(t, FromError(Permanent(cause)).Err(), cause)
}

func TestReasonsAreAClosedList(t *testing.T) {
	t.Parallel()
	d := (&Runner{Logger: slog.New(slog.DiscardHandler)}).Decide(t.Context(),
		answering(Fail(&DeadError{Reason: "made up", Err: errors.New("x")})), envelope(t, 1, 2))
	assert.Equal(t, ReasonFailed, d.Reason)
	assert.Equal(t, "crashed", (&DeadError{Reason: ReasonCrashed}).Error())
}

func TestKeptErrorsAreBounded(t *testing.T) {
	t.Parallel()
	r := &Runner{Policy: RetryPolicy{MaxAttempts: Unlimited}, KeepErrors: 3, Logger: slog.New(slog.DiscardHandler)}
	e := envelope(t, 1, Unlimited)
	before := len(e.Meta)
	for range 10 {
		next := r.Decide(t.Context(), answering(Retry(errors.New(strings.Repeat("é", 2000)))), e).Envelope
		assert.NotEqual(t, len(next.Meta), before, "the job keeps its errors")
		e = next
	}
	kept := Failures(e)
	require.Len(t, kept, 3)
	assert.Equal(t, 10, kept[2].Attempt)
	assert.LessOrEqual(t, len(kept[2].Error), maxErrorText)
	text, marked := strings.CutSuffix(kept[2].Error, textcut.Mark)
	assert.True(t, marked)
	assert.Equal(t, strings.Repeat("é", (maxErrorText-len(textcut.Mark))/2), text)
}

func TestLayersNestInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	layer := func(name string) Middleware {
		return func(next HandleFunc) HandleFunc {
			return func(ctx context.Context, e Envelope) Result {
				order = append(order, name)
				return next(ctx, e)
			}
		}
	}
	h := Func("t", func(context.Context, Envelope) Result { order = append(order, "handler"); return Success() })
	h = With(h, layer("c"), nil, layer("d"))
	r := &Runner{Middleware: []Middleware{layer("a"), layer("b")}}
	assert.Equal(t, Succeeded, r.Decide(t.Context(), h, envelope(t, 1, 2)).Outcome)
	assert.Equal(t, []string{"a", "b", "c", "d", "handler"}, order)
	assert.Equal(t, []string{"t"}, h.Types())
}

func BenchmarkDecide(b *testing.B) {
	plain := func(next HandleFunc) HandleFunc {
		return func(ctx context.Context, e Envelope) Result { return next(ctx, e) }
	}
	five := []Middleware{plain, plain, plain, plain, plain}
	e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 1, MaxAttempts: 5}
	h := Func("t", func(context.Context, Envelope) Result { return Success() })
	for _, bench := range []struct {
		name string
		r    *Runner
	}{
		{"plain", &Runner{}},
		{"five layers", &Runner{Middleware: five}},
		{"five layers, time limit", &Runner{Middleware: five, Timeout: time.Minute}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bench.r.Decide(context.Background(), h, e).Outcome != Succeeded {
					b.Fatal("failed")
				}
			}
		})
	}
}
