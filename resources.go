package task

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/worker"
)

// workerOOMScore is added to a worker's oom_score_adj, so that the kernel kills a worker before the
// parent.
const workerOOMScore = 200

// Sizes of a heapReserve in bytes, before and after the first large frame.
const (
	smallReserve = 8 << 20
	largeReserve = 32 << 20
)

// A heapReserve is memory that is allocated and never touched, so it takes address space only. The
// garbage collector counts it as live heap and runs after that many bytes of allocation, in place
// of every 4 MiB, which is a few calls with large payloads.
type heapReserve struct {
	size   int64
	memory []byte
}

func newHeapReserve(size int64) *heapReserve {
	return &heapReserve{size, make([]byte, min(size, smallReserve))}
}

// enlarge is called at the worker's first large frame.
func (r *heapReserve) enlarge() { r.memory = make([]byte, r.size) }

// limitResources sets how many processors and how much memory this worker uses. P is GOMAXPROCS of
// one process here, which follows the cgroup's quota; N is WorkerNum.
//
//   - GOMAXPROCS is P/N, at least 1, and twice that, at least 2 and at most P, while long tasks
//     run: a worker may use two shares while others are idle, and a spinning task cannot hold up
//     timers.
//   - The memory limit of the garbage collector is 90 % of the cgroup's limit, divided among the N
//     workers and the parent, unless GOMEMLIMIT is set.
//   - The process must keep the heapReserve that limitResources returns.
//
// The environment is no place for these settings: grandchildren inherit it.
func limitResources(s control.Settings) (worker.Processors, *heapReserve) {
	p := processors(runtime.GOMAXPROCS(0), s.WorkerNum)
	runtime.GOMAXPROCS(p.Share)
	size := int64(largeReserve)
	if s.MaxWorkerMemory > 0 {
		size = min(size, s.MaxWorkerMemory/8)
	}
	if limit := memstat.Limit(); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		share := limit / 10 * 9 / int64(s.WorkerNum+1)
		debug.SetMemoryLimit(share)
		size = min(size, share/8)
	}
	memstat.OOMScore(workerOOMScore)
	return p, newHeapReserve(size)
}

func processors(p, workers int) worker.Processors {
	up := func(n int) int { return (n + workers - 1) / workers }
	return worker.Processors{Share: up(p), Most: max(2, min(p, up(2*p)))}
}
