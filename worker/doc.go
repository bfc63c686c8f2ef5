// Package worker is one worker process of a pool: it accepts connections, admits packages, runs
// tasks, answers, and drains. Programs use package task.
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
// It counts as failed if it returned an error, panicked or ended its goroutine, also if its
// OnException returned a result; and if its result could not be encoded (-5) or was over the limit
// (-9).
//
// # A client that does not read
//
// A write to a full socket has 10 s. After that the connection is closed and its answers are
// dropped. Until then, tasks that end leave their answers in the connection's queue and release
// their slots. The connection takes no new package while its queue holds more than 1 MiB, so it
// never holds more than that and the answers of the tasks that were running, at most MaxRunningNum
// of them.
//
// # Time limits
//
// One goroutine watches all tasks with one timer, which is set to the next limit and to the audit,
// once a second while tasks run. An idle worker has only the timer of its age limit. Limits count
// from the moment in which the task took its slot.
//
// # Recycling
//
// A worker that has run so many tasks, is so old, or holds so much memory requests a successor
// (recycle.go), and serves on until the parent makes it drain.
//
// # The end of a connection
//
// The worker owes an answer for every package that it read. When reading ends, for any reason, the
// connection stays open until the answers of its calls are sent.
package worker
