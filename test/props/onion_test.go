package props

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// A flaky store fails the operations that it was told to, before or after the real one did its work, and keeps
// account of the leases: how many were given and not let go.
type flaky struct {
	*middleware.Memory
	before, after map[string]bool
	out           map[string]int // leases by key
}

var errDown = errors.New("store is down")

func (f *flaky) Acquire(ctx context.Context, key, owner string, slots int, ttl time.Duration) (bool, time.Duration, error) {
	if f.before["acquire"] {
		return false, 0, errDown
	}
	ok, free, err := f.Memory.Acquire(ctx, key, owner, slots, ttl)
	if ok {
		f.out[key]++
	}
	if f.after["acquire"] {
		return false, 0, errDown
	}
	return ok, free, err
}

func (f *flaky) Release(ctx context.Context, key, owner string) error {
	if held, _ := f.Renew(ctx, key, owner, time.Hour); held {
		f.out[key]--
	}
	return f.Memory.Release(ctx, key, owner)
}

func (f *flaky) Take(ctx context.Context, key string, max int, window time.Duration) (bool, time.Duration, error) {
	if f.before["take"] {
		return false, 0, errDown
	}
	return f.Memory.Take(ctx, key, max, window)
}

func (f *flaky) Count(ctx context.Context, key string) (int, time.Duration, error) {
	if f.before["count"] {
		return 0, 0, errDown
	}
	return f.Memory.Count(ctx, key)
}

var ops = rapid.MapOfN(rapid.SampledFrom([]string{"acquire", "take", "count"}), rapid.Bool(), 0, 2)

// drawLayer returns a layer of a random kind with keys of its own, and the word for what it should do.
func drawLayer(t *rapid.T, s *flaky, i int) (layer middleware.Middleware, lets string) {
	key := middleware.Key(fmt.Sprint("layer-", i))
	mine := middleware.KeyedBy(key)
	full := rapid.IntRange(0, 5).Draw(t, "full") == 0
	op := ""
	switch rapid.SampledFrom([]string{"timeout", "unique", "overlap", "concurrent", "rate", "throttle"}).Draw(t, "kind") {
	case "timeout":
		return middleware.Timeout(time.Hour), "through"
	case "unique":
		op, layer = "acquire", middleware.UniqueJob(s, key)
		occupy(s, fmt.Sprint("unique:layer-", i), full)
	case "overlap":
		op, layer = "acquire", middleware.WithoutOverlapping(s, key)
		occupy(s, fmt.Sprint("overlap:layer-", i), full)
	case "concurrent":
		op, layer = "acquire", middleware.Concurrent(s, key, 1)
		occupy(s, fmt.Sprint("concurrent:layer-", i), full)
	case "rate":
		op = "take"
		room := 1
		if full {
			room = 0
		}
		layer = middleware.RateLimited(s, room, time.Hour, mine)
	case "throttle":
		op, layer = "count", middleware.ThrottlesExceptions(s, 1, time.Hour, mine)
		if full {
			_, _ = s.Add(context.Background(), fmt.Sprint("throttle:layer-", i), time.Hour)
		}
	}
	switch {
	case s.before[op] || s.after[op]:
		return layer, "store down"
	case full && op == "acquire":
		return layer, "skip"
	case full:
		return layer, "defer"
	default:
		return layer, "through"
	}
}

func occupy(s *flaky, key string, full bool) {
	if full {
		_, _, _ = s.Memory.Acquire(context.Background(), key, "another", 1, time.Hour)
	}
}

var cores = map[string]job.HandleFunc{
	"success": func(context.Context, job.Envelope) job.Result { return job.Success() },
	"retry":   func(context.Context, job.Envelope) job.Result { return job.Retry(errors.New("boom")) },
	"fail":    func(context.Context, job.Envelope) job.Result { return job.Fail(errors.New("boom")) },
	"discard": func(context.Context, job.Envelope) job.Result { return job.Discard("") },
	"panic":   func(context.Context, job.Envelope) job.Result { panic("boom") },
}

// In any onion, each layer is entered after the ones outside it and left before them; the first that does not let
// the job through decides; the store's failure defers; and when all is over no lease is left.
func TestAnyOnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &flaky{Memory: middleware.NewMemory(nil), before: ops.Draw(t, "down"), after: map[string]bool{}, out: map[string]int{}}
		if rapid.IntRange(0, 4).Draw(t, "answers get lost") == 0 {
			s.after["acquire"] = true
		}
		name := rapid.SampledFrom([]string{"success", "retry", "fail", "discard", "panic"}).Draw(t, "core")

		var layers []job.Middleware
		var trace, in, want []string
		decided := ""
		for i := range rapid.IntRange(0, 7).Draw(t, "layers") {
			layers = append(layers, traced(fmt.Sprint(i), &trace))
			if decided == "" {
				in = append(in, fmt.Sprint(i))
			}
			layer, lets := drawLayer(t, s, i)
			layers = append(layers, layer)
			if decided == "" && lets != "through" {
				decided = lets
			}
		}
		core := func(ctx context.Context, e job.Envelope) job.Result {
			trace = append(trace, "core")
			return cores[name](ctx, e)
		}
		r := &job.Runner{Middleware: layers, Logger: slog.New(slog.DiscardHandler)}
		e := job.Envelope{V: 1, JobID: "1", JobType: "J", Payload: []byte("{}"), Attempt: 1, MaxAttempts: 3}
		d := r.Decide(context.Background(), job.Func("J", core), e)

		for _, i := range in {
			want = append(want, "enter "+i)
		}
		if decided == "" {
			want = append(want, "core")
		}
		for _, i := range slices.Backward(in) {
			want = append(want, "leave "+i)
		}
		assert.Equal(t, want, trace)
		assert.Equal(t, outcome(decided, name), d.Outcome.String())
		if decided == "store down" {
			assert.ErrorIs(t, d.Err, errDown)
		}
		for key, n := range s.out {
			assert.Zero(t, n, "leases left under %s", key)
		}
	})
}

func outcome(decided, core string) string {
	byLayer := map[string]job.Outcome{"skip": job.Skipped, "defer": job.Deferred, "store down": job.Deferred}
	byCore := map[string]job.Outcome{
		"success": job.Succeeded, "retry": job.Requeued, "panic": job.Requeued, "fail": job.Dead, "discard": job.Discarded,
	}
	if o, ok := byLayer[decided]; ok {
		return o.String()
	}
	return byCore[core].String()
}

func traced(name string, trace *[]string) job.Middleware {
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			*trace = append(*trace, "enter "+name)
			defer func() { *trace = append(*trace, "leave "+name) }()
			return next(ctx, e)
		}
	}
}
