package task

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/worker"
)

// workerOOMScore is added to a worker's oom_score_adj, so that the kernel
// prefers it to the parent.
const workerOOMScore = 200

// How many bytes of garbage more than otherwise may lie in a worker, and in one that carries large frames.
const (
	maxBallast   = 8 << 20
	largeBallast = 32 << 20
)

// A ballast is memory that nobody touches, so that it takes addresses only, but the garbage
// collector counts it and runs when as much again has been allocated, not after every 4 MiB:
// a few calls with large payloads.
type ballast struct {
	size   int64
	memory []byte
}

func newBallast(size int64) *ballast { return &ballast{size, make([]byte, min(size, maxBallast))} }

// enlarge is for a worker that has its first large frame.
func (b *ballast) enlarge() { b.memory = make([]byte, b.size) }

// shareMachine sets what this worker takes of the machine. P is what the
// runtime gives one process here (it follows the cgroup's quota), N is WorkerNum.
//
//   - GOMAXPROCS is P/N, at least 1, and twice that, at least 2 and at most P, while long tasks run:
//     a worker may use its share twice while others rest, and a spinning task cannot hold up timers.
//   - The memory limit of the garbage collector is 90 % of the cgroup's limit,
//     divided among the N workers and the parent, unless GOMEMLIMIT is set.
//   - The ballast that it returns is to be kept while the process lives.
//
// They are set here and not in the environment, which grandchildren inherit.
func shareMachine(s control.Settings) (worker.Processors, *ballast) {
	p := processors(runtime.GOMAXPROCS(0), s.WorkerNum)
	runtime.GOMAXPROCS(p.Share)
	size := int64(largeBallast)
	if s.MaxWorkerMemory > 0 {
		size = min(size, s.MaxWorkerMemory/8)
	}
	if limit := sys.MemoryLimit(); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		share := limit / 10 * 9 / int64(s.WorkerNum+1)
		debug.SetMemoryLimit(share)
		size = min(size, share/8)
	}
	sys.OOMScore(workerOOMScore)
	return p, newBallast(size)
}

func processors(p, workers int) worker.Processors {
	up := func(n int) int { return (n + workers - 1) / workers }
	return worker.Processors{Share: up(p), Most: max(2, min(p, up(2*p)))}
}
