package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job that is stopped at its limit each time is dead once its attempts are used up.
func TestAJobThatAlwaysTimesOutIsDeadAfterItsAttempts_Row17(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
		h := Func("t", func(ctx context.Context, _ Envelope) Result { <-ctx.Done(); return FromError(ctx.Err()) })
		d, runs := untilFinished(r, h, envelope(t, 1, 4))
		assert.Equal(t, 4, runs)
		assert.Equal(t, Dead, d.Outcome)
		assert.Equal(t, ReasonTimeout, d.Reason)
		assert.Equal(t, 4, d.Envelope.Attempt)
	})
}

// A payload that cannot be decoded is dead with reason decode after one try.
func TestAnUndecodablePayloadIsDeadAtOnce_Row18(t *testing.T) {
	t.Parallel()
	h := Typed("t", func(context.Context, struct{ Secret int }, Envelope) Result { return Success() })
	d, runs := untilFinished(&Runner{Logger: slog.New(slog.DiscardHandler)}, h, envelope(t, 1, 5))
	assert.Equal(t, 1, runs)
	assert.Equal(t, Dead, d.Outcome)
	assert.Equal(t, ReasonDecode, d.Reason)
}

// Attempt numbers have room and never wrap.
func TestAttemptsDoNotOverflow_Row18(t *testing.T) {
	t.Parallel()
	e, err := Decode([]byte(`{"jobType":"t","attempt":99999999999999999999,"maxAttempts":2147483647}`))
	require.NoError(t, err)
	r := &Runner{Policy: RetryPolicy{MaxAttempts: Unlimited, MaxDelay: time.Second}, Logger: slog.New(slog.DiscardHandler)}
	d := r.Decide(t.Context(), answering(Retry(nil)), e)
	assert.Equal(t, Requeued, d.Outcome)
	assert.Equal(t, Unlimited, d.Envelope.Attempt)
}

// A handler that ignores its context: Decide returns at the limit with a retry for "timeout", the
// goroutine ends when the handler does, and its late result counts for nothing.
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
		assert.LessOrEqual(t, runtime.NumGoroutine(), before)
		assert.Equal(t, []EventKind{EventStarted, EventAbandoned, EventRequeued, EventReturned}, events)

		slow := Func("t", func(context.Context, Envelope) Result { time.Sleep(time.Hour); return Success() })
		last := r.Decide(t.Context(), slow, d.Envelope)
		assert.Equal(t, Dead, last.Outcome)
		assert.Equal(t, ReasonTimeout, last.Reason)
		<-last.Abandoned
	})
}

// A shutdown that interrupts a job costs no attempt: it is available at once, with the event that
// says so.
func TestAnInterruptedJobKeepsItsAttempt_Row24(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	p := NewPublisher(func(context.Context, Envelope) error { return nil }, RetryPolicy{})
	e, err := p.Dispatch(t.Context(), "runs.in.another.program", nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "runs.in.another.program", e.JobType)
}

// Every change of state says who, what, when and why, and the dead letter tells the whole story.
func TestEveryChangeOfStateIsExplained_Row74(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []Event
		r := &Runner{Name: "worker 7", KeepErrors: 10, Logger: slog.New(slog.DiscardHandler)}
		r.OnEvent = func(ev Event) { events = append(events, ev) }
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
			}, DeadLetterTo(store, "mail"))
			require.NoError(t, err)
		}
		var reported []string
		for _, ev := range events {
			assert.Equal(t, "worker 7", ev.By)
			assert.Equal(t, e.JobID, ev.JobID)
			assert.False(t, ev.At.IsZero())
			reported = append(reported, fmt.Sprintf("%d %s %s", ev.Attempt, ev.Kind, ev.Reason))
		}
		assert.Equal(t, []string{"1 started ", "1 requeued failed", "2 started ", "2 requeued panic", "3 started ",
			"3 dead failed"}, reported)

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
	t.Parallel()
	r := &Runner{}
	e := envelope(t, 3, 3)
	for range 1000 {
		d := r.Decide(t.Context(), answering(Defer(0)), e)
		require.Equal(t, Deferred, d.Outcome)
		e = d.Envelope
	}
	assert.Equal(t, 3, e.Attempt)
}

// What travels in meta goes through a retry, the dead letter and the replay.
func TestTraceHeadersTravelAllTheWay_Row68(t *testing.T) {
	t.Parallel()
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
