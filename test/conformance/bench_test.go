package conformance

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// The databases' durability is that of their openers' defaults: SQLite with synchronous=NORMAL,
// PostgreSQL and MariaDB as their servers are set.

type nothing struct{ N int }

func (nothing) JobType() string              { return "nothing" }
func (nothing) Handle(context.Context) error { return nil }

func benchQueue(b *testing.B, db database) *queue.Queue {
	return openQueue(b, db, sqlqueue.WithNotify(db.Channel))
}

func benchWorker(q *queue.Queue, concurrency int, opts ...queue.WorkerOption) *queue.Worker {
	reg, _ := job.NewRegistry(queue.HandlerFor[nothing]())
	quiet := queue.Runner(&job.Runner{Logger: slog.New(slog.DiscardHandler)})
	return queue.NewWorker(q, reg, append(opts, queue.Concurrency(concurrency), quiet)...)
}

func perSecond(b *testing.B, n int) { b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s") }

func BenchmarkPush(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			q := benchQueue(b, d.open(b))
			n := 0
			for b.Loop() {
				_, err := q.Push(b.Context(), nothing{n})
				require.NoError(b, err)
				n++
			}
			perSecond(b, n)
		})
	}
}

// BenchmarkPushNotify is what announcing pushes costs: a NOTIFY takes a lock that all commits with
// one share.
func BenchmarkPushNotify(b *testing.B) {
	db := openPostgreSQL(b)
	for name, channel := range map[string]string{"off": "", "on": db.Channel} {
		b.Run(name, func(b *testing.B) {
			q := openQueue(b, db, sqlqueue.WithNotify(channel))
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := q.Push(b.Context(), nothing{}); err != nil {
						b.Error(err)
					}
				}
			})
			perSecond(b, b.N)
		})
	}
}

func BenchmarkPushMany1000(b *testing.B) {
	js := make([]queue.Job, 1000)
	for i := range js {
		js[i] = nothing{i}
	}
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			q := benchQueue(b, d.open(b))
			n := 0
			for b.Loop() {
				_, err := q.PushMany(b.Context(), js)
				require.NoError(b, err)
				n += len(js)
			}
			perSecond(b, n)
		})
	}
}

// BenchmarkWork works jobs that do nothing off one queue with one worker of 100.
func BenchmarkWork(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			q := benchQueue(b, d.open(b))
			js := make([]queue.Job, b.N)
			for i := range js {
				js[i] = nothing{i}
			}
			_, err := q.PushMany(b.Context(), js)
			require.NoError(b, err)
			b.ResetTimer()
			n, err := benchWorker(q, 100).WorkUntilEmpty(b.Context(), 0)
			require.NoError(b, err)
			require.Equal(b, b.N, n)
			perSecond(b, n)
		})
	}
}

// BenchmarkPickUp is the time from a push of another queue value to the handler of an idle worker
// at its defaults.
func BenchmarkPickUp(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			db := d.open(b)
			waking := benchQueue(b, db)
			if db.Waking != nil {
				store, err := db.Waking(sqlqueue.WithTables(db.Tables))
				require.NoError(b, err)
				waking = queue.New(store)
			}
			began := make(chan time.Time, 1)
			reg, _ := job.NewRegistry(job.Func("nothing", func(context.Context, job.Envelope) job.Result {
				began <- time.Now()
				return job.Success()
			}))
			w := queue.NewWorker(waking, reg)
			done := make(chan error, 1)
			go func() { done <- w.Work(b.Context(), 0) }()
			q := benchQueue(b, db)
			var took []time.Duration
			for range max(b.N, 20) {
				time.Sleep(400 * time.Millisecond) // until the worker is idle
				pushed := time.Now()
				_, err := q.Push(b.Context(), nothing{})
				require.NoError(b, err)
				took = append(took, (<-began).Sub(pushed))
			}
			require.NoError(b, w.Shutdown(context.Background()))
			require.NoError(b, <-done)
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
