// Package worker implements a worker process of a pool: it accepts connections, admits packages,
// runs tasks, answers, and drains. Programs use package task.
//
// # The path of a call
//
// One goroutine reads each connection (conn.go). It checks a package in the order that PROTOCOL.md
// gives and takes a slot of the row. It runs the task itself if the package has the Alone flag, and
// otherwise hands it to a pooled goroutine (runners.go), so that a task that blocks holds up no
// other call. A call (call.go) decodes its payload, runs the task, calls its OnException if it
// fails, and encodes the result into the response frame. Slot and counters are updated before the
// answer goes to the connection's writer (writer.go), which puts the answers of several tasks into
// one write.
//
// # Counters
//
// A task counts as a success if Run returned no error and its result fitted into a response frame.
// It counts as failed if it returned an error, panicked or ended its goroutine, even if its
// OnException returned a result. It also counts as failed if its result could not be encoded (-5)
// or was over the limit (-9).
//
// # A client that does not read
//
// A write to a full socket may take 10 s. Then the server closes the connection and drops its
// answers. Until then, tasks that end leave their answers in the connection's queue and release
// their slots. The connection takes no new package while its queue holds more than 1 MiB, so it
// never holds more than that and the answers of the tasks that were running, at most MaxRunningNum
// of them.
//
// # Time limits
//
// One goroutine, the watch, enforces all limits with one timer. It wakes at the next limit and,
// while tasks run, once a second for an audit of the counters. In an idle worker it wakes only for
// the age limit. Limits count from the moment in which the task took its slot.
//
// # Recycling
//
// A worker that reaches its limit of tasks, age or memory requests a successor (recycle.go), and
// serves on until the parent makes it drain.
//
// # The end of a connection
//
// The worker owes an answer for every package that it read. When reading ends, for any reason, the
// connection stays open until the answers of its calls are sent.
package worker
