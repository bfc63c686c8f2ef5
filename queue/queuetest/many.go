package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
)

// many are the tests with many jobs or workers, and those of their timing.
var many = []behaviour{
	{"a default lease lets a killed worker's job run again within a minute_Row15", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"))
		s.Inspect(id)           // skips the test if the store cannot do it, which must not happen in the handler
		var lease time.Duration // of a worker without the option Lease
		s.Drain(s.Worker(s.Q, fixture.Answers(func(context.Context, job.Envelope) job.Result {
			info := s.Inspect(id).Job
			lease = info.LeaseUntil.Sub(info.ReservedAt)
			return job.Success()
		})))
		require.Positive(s, lease)

		sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
		s.PushJob(sc.Job("A"))
		p := s.Stepped(queue.Lease(lease))
		require.Equal(s, "A", p.Claim())
		p.Leave()
		s.At(60)
		q := s.Stepped()
		require.Equal(s, "A", q.Claim())
		q.End(nil)
	}},
	{"many workers and jobs: each job once, deadlocks tried again_Row40_Row46", func(s *fixture.Fixture) {
		const workers, jobs = 16, 5000
		q := s.OpenLive()
		sc := fixture.NewScript(s, &fixture.Script{})
		var js []queue.Job
		for i := range jobs {
			js = append(js, sc.Job(fmt.Sprint(i)))
		}
		_, err := q.PushMany(s.Context(), js)
		require.NoError(s, err)
		var all sync.WaitGroup
		var retries atomic.Int64
		for range workers {
			own := s.OpenLive()
			w := s.Worker(own, fixture.ScriptedHandlers, queue.Concurrency(8))
			all.Go(func() {
				s.Drain(w)
				retries.Add(retriesOf(own.Backend()))
			})
		}
		all.Wait()
		s.Logf("%d transactions were tried again", retries.Load())
		s.MustBeEmpty()
		seen := map[string]int{}
		for _, name := range sc.Ran() {
			seen[name]++
			require.Equal(s, 1, seen[name], "job %s ran twice", name)
		}
		assert.Len(s, seen, jobs)
	}},
	{"jobs that failed together come back apart_Row45", func(s *fixture.Fixture) {
		const jobs = 100
		for range jobs {
			s.Push(fixture.Envelope("plain", "a"))
		}
		s.Drain(s.Worker(s.Q, fixture.Always(job.Retry(errors.New("down")))))
		due := map[int64]bool{}
		var low, high int64
		for _, info := range s.List() {
			ms := info.AvailableAt.UnixMilli() - s.Now
			due[ms] = true
			if low == 0 || ms < low {
				low = ms
			}
			high = max(high, ms)
		}
		assert.Greater(s, len(due), jobs/4)
		assert.Less(s, low, int64(900))
		assert.Greater(s, high, int64(1100))
	}},
}

// retriesOf returns how many transactions a store tried again, or 0 if it does not count them.
func retriesOf(b backend.Backend) int64 {
	if r, ok := b.(interface{ Retries() int64 }); ok {
		return r.Retries()
	}
	return 0
}
