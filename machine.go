package task

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
)

// workerOOMScore is added to a worker's oom_score_adj, so that the kernel
// prefers it to the parent.
const workerOOMScore = 200

// Bytes of garbage that the ballast lets lie in one worker, and in all of them.
const (
	maxBallast = 32 << 20
	allBallast = 512 << 20
)

// shareMachine sets what this worker takes of the machine. P is what the
// runtime gives one process here (it follows the cgroup's quota), N is WorkerNum.
//
//   - GOMAXPROCS is 2P/N, at least 2 and at most P: a worker may use its share
//     twice while others rest, and with 2 a spinning task cannot hold up timers.
//   - The memory limit of the garbage collector is 90 % of the cgroup's limit,
//     divided among the N workers and the parent, unless GOMEMLIMIT is set.
//   - What it returns is to be kept while the process lives. Nobody touches it, so that it takes
//     addresses only, but the garbage collector counts it and runs when as much again has been
//     allocated, not after every 4 MiB: a few calls with large payloads.
//
// They are set here and not in the environment, which grandchildren inherit.
func shareMachine(s control.Settings) (ballast []byte) {
	runtime.GOMAXPROCS(processors(runtime.GOMAXPROCS(0), s.WorkerNum))
	size := min(maxBallast, allBallast/s.WorkerNum)
	if limit := sys.MemoryLimit(); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		share := limit / 10 * 9 / int64(s.WorkerNum+1)
		debug.SetMemoryLimit(share)
		size = min(size, int(share/8))
	}
	sys.OOMScore(workerOOMScore)
	return make([]byte, size)
}

func processors(p, workers int) int {
	share := (2*p + workers - 1) / workers
	return max(2, min(p, share))
}
