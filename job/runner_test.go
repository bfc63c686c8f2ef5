package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// untilSettled feeds what is requeued back, as a transport does, until the job is finished.
func untilSettled(r *Runner, h Handler, e Envelope) (d Decision, runs int) {
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

// A job that is stopped at its limit each time is dead once its attempts are used up.
func TestAJobThatAlwaysTimesOutIsDeadAfterItsAttempts_Row17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
		h := Func("t", func(ctx context.Context, _ Envelope) Result { <-ctx.Done(); return FromError(ctx.Err()) })
		d, runs := untilSettled(r, h, envelope(t, 1, 4))
		assert.Equal(t, 4, runs)
		assert.Equal(t, Dead, d.Outcome)
		assert.Equal(t, ReasonTimeout, d.Reason)
		assert.Equal(t, 4, d.Envelope.Attempt)
	})
}

// A payload that cannot be decoded is dead with reason decode after one try.
func TestAnUndecodablePayloadIsDeadAtOnce_Row18(t *testing.T) {
	h := Typed("t", func(context.Context, struct{ Secret int }, Envelope) Result { return Success() })
	d, runs := untilSettled(&Runner{Logger: slog.New(slog.DiscardHandler)}, h, envelope(t, 1, 5))
	assert.Equal(t, 1, runs)
	assert.Equal(t, Dead, d.Outcome)
	assert.Equal(t, ReasonDecode, d.Reason)
}

// Attempt numbers have room and never wrap.
func TestAttemptsDoNotOverflow_Row18(t *testing.T) {
	e, err := Decode([]byte(`{"jobType":"t","attempt":99999999999999999999,"maxAttempts":2147483647}`))
	require.NoError(t, err)
	r := &Runner{Policy: RetryPolicy{MaxAttempts: Unlimited, MaxDelay: time.Second}, Logger: slog.New(slog.DiscardHandler)}
	d := r.Decide(t.Context(), answering(Retry(nil)), e)
	assert.Equal(t, Requeued, d.Outcome)
	assert.Equal(t, Unlimited, d.Envelope.Attempt)
}

// A handler that ignores its context: Decide returns at the limit with a retry for "timeout", the goroutine ends
// when the handler does, and its late result counts for nothing.
func TestADeafHandlerIsLeftAtTheLimit_Row21(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		var events []EventKind
		var mu sync.Mutex
		r := &Runner{Timeout: time.Second, Logger: slog.New(slog.DiscardHandler), OnEvent: func(ev Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, ev.Kind)
		}}
		release := make(chan struct{})
		h := Func("t", func(context.Context, Envelope) Result { <-release; return Success() })

		start := time.Now()
		d := r.Decide(t.Context(), h, envelope(t, 1, 2))
		assert.Equal(t, time.Second, time.Since(start))
		assert.Equal(t, Requeued, d.Outcome)
		assert.Equal(t, ReasonTimeout, d.Reason)
		assert.Equal(t, 2, d.Envelope.Attempt)
		require.NotNil(t, d.Abandoned)
		select {
		case <-d.Abandoned:
			t.Fatal("the handler still runs")
		default:
		}

		close(release)
		<-d.Abandoned
		synctest.Wait()
		assert.Equal(t, before, runtime.NumGoroutine())
		assert.Equal(t, []EventKind{EventStarted, EventAbandoned, EventRequeued, EventReturned}, events)

		last := r.Decide(t.Context(), Func("t", func(context.Context, Envelope) Result { time.Sleep(time.Hour); return Success() }), d.Envelope)
		assert.Equal(t, Dead, last.Outcome)
		assert.Equal(t, ReasonTimeout, last.Reason)
		<-last.Abandoned
	})
}

// A handler that heeds its context is seen as timed out too, and is not abandoned when it returns in time.
func TestAHandlerThatHeedsItsContextTimesOut(t *testing.T) {
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

// A shutdown that interrupts a job costs no attempt: it is available at once, with the event that says so.
func TestAnInterruptedJobKeepsItsAttempt_Row24(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprintf("limit %s", limit), func(t *testing.T) {
			var last Event
			r := &Runner{Timeout: limit, OnEvent: func(ev Event) { last = ev }, KeepErrors: 5}
			ctx, cancel := context.WithCancelCause(t.Context())
			h := Func("t", func(ctx context.Context, _ Envelope) Result {
				cancel(errors.New("SIGTERM"))
				<-ctx.Done()
				return FromError(fmt.Errorf("half way: %w", ctx.Err()))
			})
			e := envelope(t, 2, 2)
			d := r.Decide(ctx, h, e)
			assert.Equal(t, Deferred, d.Outcome)
			assert.Equal(t, e, d.Envelope)
			assert.Zero(t, d.Delay)
			assert.Equal(t, ReasonInterrupted, last.Reason)
		})
	}
}

// The context ends at a random point while jobs run: no panic, each job gets exactly one decision.
func TestCancellingAtAnyPointSettlesEveryJob_Row25(t *testing.T) {
	r := &Runner{Timeout: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	var jobs sync.WaitGroup
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		jobs.Go(func() {
			h := Func("t", func(ctx context.Context, _ Envelope) Result {
				if rand.IntN(2) == 0 {
					<-ctx.Done()
				}
				return FromError(ctx.Err())
			})
			d := r.Decide(ctx, h, Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 1, MaxAttempts: 5})
			assert.Contains(t, []Outcome{Succeeded, Requeued, Deferred}, d.Outcome)
			if d.Abandoned != nil {
				<-d.Abandoned
			}
		})
		for range rand.IntN(50) {
			runtime.Gosched()
		}
		cancel()
	}
	jobs.Wait()
}

// A thousand jobs that fail at one instant come back spread over more than ±10 %, at the cap too.
func TestRetriesAreSpread_Row45(t *testing.T) {
	for _, attempt := range []int{1, 5, 20} {
		t.Run(fmt.Sprintf("attempt %d", attempt), func(t *testing.T) {
			p := DefaultRetryPolicy()
			low, high := 0.8*float64(p.BaseDelayFor(attempt)), 1.2*float64(p.BaseDelayFor(attempt))
			high = min(high, float64(p.MaxDelay))
			const n, buckets = 1000, 10
			var count [buckets]int
			for range n {
				d := float64(p.Delay(attempt))
				count[min(buckets-1, int((d-low)/(high-low)*buckets))]++
			}
			chi := 0.0
			for _, c := range count {
				chi += float64((c-n/buckets)*(c-n/buckets)) / (n / buckets)
			}
			assert.Less(t, chi, 40.0, "%v", count) // 9 degrees of freedom: above 40 once in 100,000 runs
		})
	}
}

// The publisher knows nothing of handlers.
func TestPublishingNeedsNoRegistry_Row73(t *testing.T) {
	p := NewPublisher(func(context.Context, Envelope) error { return nil }, RetryPolicy{})
	e, err := p.Dispatch(t.Context(), "runs.in.another.program", nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "runs.in.another.program", e.JobType)
}

// Every change of state says who, what, when and why, and the dead letter tells the whole story.
func TestEveryChangeOfStateIsExplained_Row74(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []Event
		r := &Runner{Name: "worker 7", KeepErrors: 10, Logger: slog.New(slog.DiscardHandler), OnEvent: func(ev Event) { events = append(events, ev) }}
		store := NewMemoryDeadLetters()
		runs := 0
		h := Func("t", func(context.Context, Envelope) Result {
			if runs++; runs == 2 {
				panic("at the disco")
			}
			return Retry(fmt.Errorf("failure %d", runs))
		})
		e, again := envelope(t, 1, 3), true
		for again {
			again = false
			_, err := r.Run(t.Context(), h, e, func(_ context.Context, next Envelope, delay time.Duration) error {
				time.Sleep(delay)
				e, again = next, true
				return nil
			}, BuryIn(store, "mail"))
			require.NoError(t, err)
		}
		var told []string
		for _, ev := range events {
			assert.Equal(t, "worker 7", ev.By)
			assert.Equal(t, e.JobID, ev.JobID)
			assert.False(t, ev.At.IsZero())
			told = append(told, fmt.Sprintf("%d %s %s", ev.Attempt, ev.Kind, ev.Reason))
		}
		assert.Equal(t, []string{"1 started ", "1 requeued failed", "2 started ", "2 requeued panic", "3 started ", "3 dead failed"}, told)

		page, _, err := store.Page(t.Context(), "mail", "", 10)
		require.NoError(t, err)
		require.Len(t, page, 1)
		letter := page[0]
		assert.Equal(t, ReasonFailed, letter.Reason)
		assert.Equal(t, "failure 3", letter.Error)
		require.Len(t, letter.Attempts, 3)
		for i, want := range []string{"failure 1", "at the disco", "failure 3"} {
			assert.Equal(t, want, letter.Attempts[i].Error)
			assert.Equal(t, i+1, letter.Attempts[i].Attempt)
			assert.NotZero(t, letter.Attempts[i].At)
		}
		assert.Equal(t, map[string]any{"traceparent": "00-ab-cd-01"}, letter.Job.Meta)
	})
}

// Deferring costs no attempt, however often.
func TestDeferringCostsNoAttempt_Row60(t *testing.T) {
	r := &Runner{}
	e := envelope(t, 3, 3)
	for range 1000 {
		d := r.Decide(t.Context(), answering(Defer(0)), e)
		require.Equal(t, Deferred, d.Outcome)
		e = d.Envelope
	}
	assert.Equal(t, 3, e.Attempt)
}

func TestADeferralEndsAtItsMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logRecorder{}
		r := &Runner{Logger: slog.New(logs)}
		e := envelope(t, 1, 5)
		time.Sleep(48 * time.Hour) // being old is no deferral
		start := time.Now()
		d, _ := untilSettled(r, answering(Defer(time.Hour).WithErr(errors.New("store is down"))), e)
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

		d, runs := untilSettled(r, h, e)
		assert.Equal(t, Dead, d.Outcome)
		assert.Equal(t, ReasonDeferred, d.Reason)
		assert.Equal(t, 24*60+1, runs)
	})
}

func TestALostLeaseSettlesNothing(t *testing.T) {
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
	ctx, cancel := context.WithCancelCause(t.Context())
	h := Func("t", func(context.Context, Envelope) Result { cancel(ErrLeaseLost); return Success() })
	assert.Equal(t, Succeeded, (&Runner{}).Decide(ctx, h, envelope(t, 1, 5)).Outcome)
}

func TestPanicsAreRetriesAndLayersLetGo(t *testing.T) {
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
	r := &Runner{Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	d := r.Decide(t.Context(), Func("t", func(context.Context, Envelope) Result { runtime.Goexit(); return Success() }), envelope(t, 1, 2))
	assert.Equal(t, Requeued, d.Outcome)
	assert.EqualError(t, d.Err, "no result")
}

func TestLogsNeverHoldThePayload(t *testing.T) {
	logs := &logRecorder{}
	r := &Runner{Logger: slog.New(logs)}
	r.Decide(t.Context(), answering(Retry(errors.New("down"))), envelope(t, 1, 3))
	r.Decide(t.Context(), answering(Retry(&DeadError{Reason: ReasonTimeout, Err: errors.New("too slow")})), envelope(t, 3, 3))
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

// What travels in meta goes through a retry, the dead letter and the replay.
func TestTraceHeadersTravelAllTheWay_Row68(t *testing.T) {
	r := &Runner{Logger: slog.New(slog.DiscardHandler)}
	d := r.Decide(t.Context(), answering(Retry(nil)), envelope(t, 1, 2))
	data, err := d.Envelope.Encode()
	require.NoError(t, err)
	next, err := Decode(data)
	require.NoError(t, err)
	d = r.Decide(t.Context(), answering(Retry(nil)), next)
	require.Equal(t, Dead, d.Outcome)
	store := NewMemoryDeadLetters()
	_, err = store.Put(t.Context(), NewDeadLetter("", d.Envelope, d.Err))
	require.NoError(t, err)
	_, err = Replay(t.Context(), store, func(_ context.Context, e Envelope) error {
		assert.Equal(t, "00-ab-cd-01", e.MetaString("traceparent", ""))
		assert.Equal(t, json.Number("1"), e.Meta[MetaReplays])
		return nil
	}, Filter{})
	require.NoError(t, err)
}

func TestResults(t *testing.T) {
	cause := errors.New("cause")
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
		{"a permanent error", FromError(fmt.Errorf("wrapped: %w", Permanent(cause))), KindFail, "wrapped: cause", 0, false, true},
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
	d := (&Runner{Logger: slog.New(slog.DiscardHandler)}).Decide(t.Context(),
		answering(Fail(&DeadError{Reason: "made up", Err: errors.New("x")})), envelope(t, 1, 2))
	assert.Equal(t, ReasonFailed, d.Reason)
	assert.Equal(t, "crashed", (&DeadError{Reason: ReasonCrashed}).Error())
}

func TestKeptErrorsAreBounded(t *testing.T) {
	r := &Runner{Policy: RetryPolicy{MaxAttempts: Unlimited}, KeepErrors: 3, Logger: slog.New(slog.DiscardHandler)}
	e := envelope(t, 1, Unlimited)
	before := len(e.Meta)
	for range 10 {
		next := r.Decide(t.Context(), answering(Retry(errors.New(strings.Repeat("é", 2000)))), e).Envelope
		assert.NotEqual(t, len(next.Meta), before, "the job keeps its errors")
		e = next
	}
	kept := metaErrors(e.Meta)
	require.Len(t, kept, 3)
	assert.Equal(t, 10, kept[2].Attempt)
	assert.LessOrEqual(t, len(kept[2].Error), maxErrorText)
	assert.Equal(t, strings.Repeat("é", 512), kept[2].Error)
}

func TestLayersNestInOrder(t *testing.T) {
	var order []string
	layer := func(name string) Middleware {
		return func(next HandleFunc) HandleFunc {
			return func(ctx context.Context, e Envelope) Result {
				order = append(order, name)
				return next(ctx, e)
			}
		}
	}
	h := With(Func("t", func(context.Context, Envelope) Result { order = append(order, "handler"); return Success() }), layer("c"), nil, layer("d"))
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
