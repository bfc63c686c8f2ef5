package middleware_test

import (
	"context"
	"testing"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// BenchmarkPlainLayers is the cost of the onion itself: five layers that do nothing, in a Runner
// without a limit.
func BenchmarkPlainLayers(b *testing.B) {
	plain := func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result { return next(ctx, e) }
	}
	benchmark(b, plain, plain, plain, plain, plain)
}

// BenchmarkBuiltinLayers is the document's five layers on the memory store.
func BenchmarkBuiltinLayers(b *testing.B) {
	s := middleware.NewMemory(nil)
	benchmark(b,
		middleware.Timeout(time.Minute),
		middleware.UniqueJob(s, nil),
		middleware.WithoutOverlapping(s, middleware.Key("import")),
		middleware.RateLimited(s, 1000, time.Nanosecond),
		middleware.ThrottlesExceptions(s, 0, 0),
	)
}

// BenchmarkLayer is each layer alone.
func BenchmarkLayer(b *testing.B) {
	s := middleware.NewMemory(nil)
	for _, l := range []struct {
		name  string
		layer middleware.Middleware
	}{
		{"none", nil},
		{"timeout", middleware.Timeout(time.Minute)},
		{"unique", middleware.UniqueJob(s, nil)},
		{"overlap by payload", middleware.WithoutOverlapping(s, middleware.Key("import_{supplier_id}"))},
		{"rate", middleware.RateLimited(s, 1000, time.Nanosecond)},
		{"throttle", middleware.ThrottlesExceptions(s, 0, 0)},
	} {
		b.Run(l.name, func(b *testing.B) { benchmark(b, l.layer) })
	}
}

func benchmark(b *testing.B, layers ...middleware.Middleware) {
	r := &job.Runner{Middleware: layers, Logger: discard}
	h := job.Func("J", func(context.Context, job.Envelope) job.Result { return job.Success() })
	e := envelope("J")
	e.Payload = []byte(`{"supplier_id":7}`)
	b.ReportAllocs()
	for b.Loop() {
		if d := r.Decide(b.Context(), h, e); d.Outcome != job.Succeeded {
			b.Fatal(d.Outcome, d.Err)
		}
	}
}
