// Package tasktest is a pool inside one process, for the unit tests of programs that use pools. It
// starts no process, so the test binary needs no TestMain.
//
//	func TestResize(t *testing.T) {
//		pool := tasktest.New(t, task.Config{WorkerNum: 2})
//		got, err := resize.Sync(t.Context(), pool, Size{640, 480})
//		…
//	}
//
// Calls take the same path as in a real pool: the client of task.Dial, real sockets, the worker's
// own code, the same table. So results, failures, size limits, deadlines, busy answers, waiting,
// meta, the allow-list and Status are those of a real pool; a test of this package runs the same
// behaviours over both.
//
// # Crashes
//
// [Pool.Fail] simulates a crash of the worker that takes a call: before it accepts the package,
// after that, or in the middle of its answer. The caller gets the error of a real crash, the tasks
// that ran in that worker count as lost, and a successor accepts at once. [Pool.FailStarts] makes
// starts fail; the pool tries again after 100 ms, then after twice as long each time.
//
// # Differences from a real pool
//
//   - All workers are this process: they have one pid, one set of package variables and one memory.
//     The test and the other workers see a variable that a task changes.
//   - A task that ends its process, with os.Exit or a signal to itself, ends the test.
//   - Nothing can end a goroutine. A simulated crash ends the contexts of the worker's tasks, with
//     the cause "the worker was killed"; a task that ignores that runs on, counts as lost, and its
//     result is dropped. The same holds for a hard limit (the caller gets its answer at once, the
//     worker is replaced, its other tasks have DrainTimeout) and for the end of Shutdown's ctx.
//   - OnWorkerStart runs in this process, once for each start of a worker. StartTimeout does not
//     interrupt it.
//   - TempDir, Env, MaxReplacing and MaxWorkerMemory do not count: each pool has a directory of its
//     own, no program is re-executed, each index is replaced on its own, and the memory is the
//     test's.
//   - There is no Reload, and no event about the recovery of an index or about drift.
package tasktest
