package pool_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/taskd-go/task"
)

// benchPool starts two workers, as the comparison with other libraries does.
func benchPool(b *testing.B) *task.Task {
	b.Helper()
	dir, err := os.MkdirTemp("/tmp", "bench")
	if err != nil {
		b.Fatal(err)
	}
	pool, err := task.New(task.Config{WorkerNum: 2, ServerName: "bench", TempDir: dir})
	if err == nil {
		err = pool.Start(context.Background())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := pool.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		os.RemoveAll(dir)
	})
	return pool
}

// share runs b.N calls from n callers.
func share(b *testing.B, n int, call func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkSync(b *testing.B) {
	pool := benchPool(b)
	for _, size := range []int{64, 1 << 10, 64 << 10, 1 << 20} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("bytes=%d/callers=%d", size, callers), func(b *testing.B) {
				r := Bytes{Data: make([]byte, size)}
				b.SetBytes(int64(size))
				share(b, callers, func() error {
					_, err := pool.Sync(context.Background(), r, task.WithTimeout(waitLimit))
					return err
				})
			})
		}
	}
}

func BenchmarkAsync(b *testing.B) {
	pool := benchPool(b)
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			share(b, callers, func() error {
				_, err := pool.Async(context.Background(), Bytes{}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
				return err
			})
		})
	}
}

func BenchmarkSyncMany(b *testing.B) {
	pool := benchPool(b)
	rs := make([]task.Runner, 100)
	for i := range rs {
		rs[i] = Bytes{}
	}
	b.Run("tasks=100/callers=4", func(b *testing.B) {
		share(b, 4, func() error {
			for _, o := range pool.SyncMany(context.Background(), rs, task.WithWait(waitLimit), task.WithTimeout(waitLimit)) {
				if o.Err != nil {
					return o.Err
				}
			}
			return nil
		})
		b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "tasks/s")
	})
}
