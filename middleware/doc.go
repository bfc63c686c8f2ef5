// Package middleware has the layers that can be put around a job's handler: a time limit, a rate limit, a brake
// on failures, and locks that keep jobs from running beside each other.
//
// A layer is a job.Middleware; in a list the first is the outermost. The layers share a [Store], in which what
// they hold is leased and ends by itself when a process dies. Each has a name space of its own there: "unique",
// "overlap", "concurrent", "rate" and "throttle".
//
// What the layers promise:
//
//   - A layer lets go when its next returns, panics or not, however the job's context ended. A handler that
//     outlives its time limit keeps its locks until it returns.
//   - A lease is renewed while the handler runs. A handler whose lease was lost learns it through its context,
//     whose cause is job.ErrLeaseLost then.
//   - A store that fails defers the job, with the error. The job is neither run unguarded nor dropped.
//   - A job that was not let through did not run. Its [RefusedError] says why, and [OnEvent] reports it.
package middleware

import "github.com/taskd-go/task/job"

// Middleware is job.Middleware.
type Middleware = job.Middleware
