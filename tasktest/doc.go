// Package tasktest runs a pool inside one process, for the unit tests of programs that use pools.
// It starts no process, so the test binary needs no TestMain.
//
//	func TestResize(t *testing.T) {
//		pool := tasktest.New(t, task.Config{WorkerNum: 2})
//		got, err := resize.Sync(t.Context(), pool, Size{640, 480})
//		…
//	}
//
// Calls take the same path as in a real pool: the client of task.Dial, real sockets, the code of a
// worker, the table in shared memory. So results, failures, size limits, deadlines, busy answers,
// waiting, meta, Config.Tasks and Status are those of a real pool. The tests of this package check
// the same behaviours in both.
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
//   - A goroutine cannot be killed. A simulated crash ends the contexts of the worker's tasks, with
//     the cause "the worker was killed". A task that ignores that runs on as a goroutine, but counts
//     as lost, and its result is dropped. The same holds at a hard limit (the caller gets its answer
//     at once, the worker is replaced, its other tasks have DrainTimeout) and at the end of
//     Shutdown's ctx.
//   - OnWorkerStart runs in this process, once for each start of a worker. StartTimeout does not
//     interrupt it.
//   - TempDir, Env, MaxReplacing and MaxWorkerMemory have no effect: each pool has a directory of
//     its own, no program is re-executed, each index is replaced on its own, and the memory is the
//     test's.
//   - A Pool has no Reload, and no events about degraded or recovered indexes and about drift.
package tasktest
