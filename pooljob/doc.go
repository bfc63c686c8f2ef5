// Package pooljob runs job handlers in the worker processes of a pool, where a time limit can be
// enforced: a handler that ignores its context is stopped with its process.
//
// A program registers its handlers before the pool starts, in every process, and runs its jobs with
// the handlers that call the pool:
//
//	remote := pooljob.Register(registry)
//	pool, err := task.New(task.Config{MaxRunningNum: 1})
//	err = pool.Start(ctx)
//	handlers := remote.Handlers(pool, 5*time.Minute)
//	outcome, err := runner.RunRegistered(ctx, handlers, envelope, requeue, dead)
//
// The Runner and its middleware run in the process that calls the pool. Layers that job.With put
// around a registered handler run in the worker. Give the pool a MaxRunningNum of 1: then the pool
// stops no other job when it stops a process.
//
// # What happens to a job whose call fails
//
//   - It did not run, because no worker had a free slot or for another reason: it is deferred with
//     the error. No attempt counts.
//   - The hard limit stopped it: a retry with the reason "timeout".
//   - Its process was lost: a retry with the reason "crashed". If the process was stopped for
//     another job's hard limit or by the end of the pool, the job is deferred with the reason
//     "interrupted"; no attempt counts.
//   - Its context ended: a retry with the context's error. The Runner turns that into a deferral
//     with the reason "interrupted" if its own caller's context ended, and into a timeout at its
//     Timeout.
//
// Otherwise the handler's own result is the result. Its errors cross as text, with their reason.
//
// # No overlap
//
// A handler of [Remote.Handlers] returns only when the job can no longer start, and the worker has
// finished it or has ended. So the next attempt never runs beside the last one. Both processes open
// a temporary file, and the worker locks it while the job runs; the kernel releases the lock
// however the worker ends.
//
// # Time limits
//
// When the caller's context ends, such as by the Runner's Timeout, the handler's context in the
// worker ends too; what the handler returns after that is lost. The hard limit stops the process.
// Make it longer than the Runner's Timeout, or use the hard limit alone.
package pooljob
