package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue"
)

const (
	limitProcesses = 4
	limitTook      = 100 * time.Millisecond
)

// limitSlots is what the limit lets run. A small machine is busy with 400 jobs a second, limit or
// not, so only the full size asks for them.
func limitSlots() int { return scale(40, 8) }

// A global limit halved the throughput. Here a limit that four processes share in the database
// costs less than a tenth of what they do without one.
func TestGlobalLimitKeepsTheThroughput_Row43(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			const tries = 3 // another load on the machine hits the two runs differently
			for try := 1; ; try++ {
				without, with := together(t, db, "unlimited"), together(t, db, "limited")
				share := float64(with) / float64(without)
				t.Logf("%d jobs with the limit, %d without: %.0f %%", with, without, 100*share)
				if share >= 0.9 || try == tries {
					assert.GreaterOrEqual(t, share, leastShare())
					break
				}
			}
		})
	}
}

// leastShare is what a limit must leave of the throughput. A short test shares the machine with others: it
// tells a limit that halves the throughput, and no more.
func leastShare() float64 { return float64(scale(90, 50)) / 100 }

func limitedFor() time.Duration { return time.Duration(scale(10, 2)) * time.Second }

// together runs the processes on more jobs than they can do, and returns how many they did.
func together(t *testing.T, db database, role string) (total int) {
	run(t, db, "DELETE FROM "+db.Tables.Prefix+"jobs")
	pushNothings(t, db, int(limitedFor()/limitTook)*limitSlots()*2)
	ran := make(chan int, limitProcesses)
	for range limitProcesses {
		cmd := child(t, db, role)
		go func() { ran <- number(t, cmd) }()
	}
	for range limitProcesses {
		total += <-ran
	}
	return total
}

func workUnlimited(ctx context.Context, q *queue.Queue) error { return workFor(ctx, q) }

func workLimited(ctx context.Context, q *queue.Queue) error {
	return workFor(ctx, q, middleware.Concurrent(q.Locks(), middleware.Key("quota"), limitSlots(),
		middleware.OnBusy(job.Defer(limitTook/2))))
}

// workFor works for a while and prints how many jobs ended in it. The while begins when every slot
// has had a job: until then connections are opened, and a limit has each slot open one.
func workFor(ctx context.Context, q *queue.Queue, layers ...job.Middleware) error {
	first := int64(limitSlots() / limitProcesses)
	var ended, ran atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reg, err := job.NewRegistry(job.Func("nothing", func(context.Context, job.Envelope) job.Result {
		time.Sleep(limitTook) // the length of the job
		switch n := ended.Add(1); {
		case n == first:
			time.AfterFunc(limitedFor(), cancel)
		case n > first && ctx.Err() == nil:
			ran.Add(1)
		}
		return job.Success()
	}))
	if err != nil {
		return err
	}
	w := queue.NewWorker(q, reg, queue.Concurrency(int(first)),
		queue.Runner(&job.Runner{Middleware: layers, Logger: slog.New(slog.DiscardHandler)}))
	err = w.Work(ctx, 0)
	fmt.Println(ran.Load())
	return err
}
