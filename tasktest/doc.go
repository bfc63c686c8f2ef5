// Package tasktest is a pool inside one process, for the unit tests of programs that use pools:
// nothing is forked, so the test binary needs no TestMain.
//
//	func TestResize(t *testing.T) {
//		pool := tasktest.New(t, task.Config{WorkerNum: 2})
//		got, err := resize.Sync(t.Context(), pool, Size{640, 480})
//		…
//	}
//
// Calls take the same way as in a real pool: the worker's own code behind real sockets, the
// client of task.Dial before them, the same table between. Results, failures, limits of size,
// deadlines, busy answers, waiting, meta, the allow-list and Status are therefore those of a
// real pool, and a test of this package runs the same behaviours over both.
//
// # Deaths
//
// [Pool.Fail] makes a call meet a worker that dies before it accepts the package, after that, or
// in the middle of its answer. The caller gets the error that it would get of a real death, what
// was running in that worker counts as lost, and a successor accepts at once. [Pool.FailStarts]
// makes successors fail to start; what keeps failing is tried again after 100 ms, then twice as
// long each time.
//
// # What differs from a real pool
//
//   - All workers are this process: one pid, one set of package variables, one memory. A task
//     that changes a variable is seen by the test, and by the other workers.
//   - A task that ends the process, with os.Exit or a signal to itself, ends the test.
//   - Nothing can end a goroutine. A death ends the contexts of the worker's tasks, with the cause
//     "the worker was killed"; a task that does not heed it goes on, counts as lost, and what it
//     returns is dropped. So it is with a hard limit: the caller gets its answer at once,
//     the worker is replaced, its other tasks have DrainTimeout, and the task that was too slow
//     runs on. At the end of Shutdown's ctx as well.
//   - OnWorkerStart runs in this process, once for each start of a worker, and StartTimeout does
//     not interrupt it.
//   - TempDir, Env, MaxReplacing and MaxWorkerMemory do not count: each pool has a folder of its
//     own, nothing is re-executed, each index is replaced on its own, and the memory is the test's.
//   - There is no Reload, and OnEvent is not told of a pool's recovery or of drift.
package tasktest
