// Package middleware has the layers that a program puts around a job's handler: a time limit, rate
// limits, and locks that keep jobs from running beside each other.
//
// A layer is a [job.Middleware]. [job.With] puts layers around one handler, job.Runner.Middleware
// around all of them; in both lists the first is the outermost. A layer either calls the next one
// or answers in its place; the layers outside it see that answer as the result. A program's own
// layer is a function of that type.
//
//   - [Timeout] ends the handler's context.
//   - [RateLimited] limits how many jobs start in a window of time.
//   - [ThrottlesExceptions] stops a job type that failed too often.
//   - [UniqueJob], [WithoutOverlapping] and [Concurrent] limit how many jobs of a key run at a
//     time.
//
// All but Timeout share a [Store], so their limits hold over all processes that use it: [Memory]
// serves one process, and package queue has one in SQL. Each layer has keys of its own there, which
// begin with "rate", "throttle", "unique", "overlap" or "concurrent".
//
// # What happens to a job that a layer refuses
//
// The job did not run, and the result's error is a [RefusedError]. RateLimited and
// ThrottlesExceptions defer it until the window opens, which costs no attempt; the three locks skip
// it, which finishes it. [AsFailure] makes any refusal a failed attempt, and [OnBusy] gives it
// another result, such as job.Defer(d). [OnEvent] reports each refusal.
//
// # What the layers promise
//
//   - A lock is a lease with an owner and an end. The layer renews it while the handler runs. If
//     the process dies, the lock is free after [Lease].
//   - A layer releases its lock when the handler returns or panics, however the job's context
//     ended. A handler that outlives its time limit keeps its locks until it returns.
//   - The context of a handler whose lease was lost ends with the cause [job.ErrLeaseLost].
//   - A store that fails defers the job by 5 s, with the error. The job does not run without its
//     lock, and it is not lost.
package middleware

import "github.com/taskd-go/task/job"

// Middleware is [job.Middleware].
type Middleware = job.Middleware
