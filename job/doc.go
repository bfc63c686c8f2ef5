// Package job runs one unit of background work and decides what happens to it next: it is done, it
// runs again, it waits, or it is dead.
//
// A job travels as an [Envelope], a JSON object. Of its eight members only jobType is required:
//
//	{"v": 1, "jobId": "job_20260712101112_ab12cd34ef56", "jobType": "order.paid.notify",
//	 "payload": {"orderId": 10001}, "meta": {"tenantId": "t1"},
//	 "attempt": 1, "maxAttempts": 5, "createdAt": 1783851072}
//
// [New] and [Publisher] make one, [Decode] reads one, and [DecodeLegacy] reads messages from before
// there were envelopes. A [Handler] runs the jobs of its types and answers each with a [Result]:
// Success, Retry, Fail, Discard, Defer or Skip. [Typed] makes a handler of a function that takes
// the decoded payload. A [Middleware] is a layer around a handler; package middleware has locks and
// limits.
//
// A [Runner] calls the handler, recovers its panics, keeps the time limit, and turns the result
// into a [Decision] by a [RetryPolicy]: by default a job runs 5 times, with delays of 1 s that
// double up to 300 s, varied by 20 %.
//
// # At least once
//
// The package does not depend on a transport or a database. A program that takes messages from a
// queue calls [Runner.Run] or [Runner.Decide], stores the next state of the job, and only then
// acknowledges the message. A crash between storing and acknowledging makes the job run again; no
// job is lost. A handler must therefore expect a second run of a job. It recognises one by
// Envelope.JobID, or by a key of its own in the meta. Package queue does all this over SQL.
//
// # Attempts
//
// Envelope.Attempt is the number of this run, from 1. A Retry uses up an attempt; a Defer, the end
// of the caller's context and a lost lease do not. The last attempt is the smaller of the
// envelope's and the policy's MaxAttempts. A job that is deferred for longer than
// Runner.MaxDeferAge, 24 h by default, is dead.
//
// # Time limits
//
// Runner.Timeout ends the handler's context. Go cannot stop a handler that ignores its context: the
// Runner leaves it behind and says so in Decision.Abandoned. Package pooljob runs handlers in
// worker processes, which can be stopped.
//
// # Dead letters
//
// A job is dead after Fail, after a retry on its last attempt, without a handler for its type, and
// with a payload that its handler cannot decode. A [DeadLetter] has the job, its [Reason] from a
// closed list, and the errors of its attempts, if Runner.KeepErrors kept them. [DeadLetters] stores
// the letters: in memory, in a file, or in a store of the program's own. [Replay] publishes those
// that a [Filter] chooses again, with all their attempts, and removes them. Otherwise a letter
// stays in its store until the program removes it.
//
// # Events and logs
//
// Runner.OnEvent is called for each change of a job's state, with an [EventKind] from a closed
// list. The Runner logs job.retry, job.timeout, job.dead, job.defer (a deferral with an error) and
// job.unsettled. Neither ever has the payload.
package job
