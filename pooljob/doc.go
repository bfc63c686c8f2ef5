// Package pooljob runs job handlers in the worker processes of a pool, where a time limit can be enforced: a handler
// that is deaf to its context is stopped with its process.
//
// The program registers its handlers in every process, before the pool starts, and runs the jobs with the handlers
// that carry them there:
//
//	remote := pooljob.Register(registry)
//	pool, err := task.New(task.Config{MaxRunningNum: 1})
//	err = pool.Start(ctx)
//	handlers := remote.Handlers(pool, 5*time.Minute)
//	outcome, err := runner.RunRegistered(ctx, handlers, envelope, requeue, dead)
//
// Give the pool a MaxRunningNum of 1: then a process that is stopped takes no neighbour with it. Runner and
// middleware stay in the process that calls the pool; layers put around a registered handler with job.With run in
// the worker.
//
// # What a failed call becomes
//
//   - The job did not run, for want of a free worker or otherwise: job.Defer with the error. No attempt is counted.
//   - The hard limit stopped it: a retry with the reason "timeout".
//   - Its process was lost: a retry with the reason "crashed". But where the process was stopped for another job's hard
//     limit or at the end of the pool, a deferral with the reason "interrupted"; no attempt is counted.
//   - The context ended: a retry with its error, which a Runner defers as "interrupted".
//   - Anything else is the handler's own answer.
//
// # No overlap
//
// A handler of Handlers returns only when the job does not run any more and cannot begin to: after the worker has
// let go of it or is gone. So the Runner's next attempt never runs beside the last one. The proof is a lock on a
// temporary file that both processes open; the kernel releases it however a process ends.
//
// # Time limits
//
// The end of the context, the Runner's time limit for one, ends the handler's context in the worker; what the handler
// answers after that is lost. The hard limit stops the process; let it be the longer one, or leave the Runner
// without a limit.
package pooljob
