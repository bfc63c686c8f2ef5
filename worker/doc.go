// Package worker is one worker process of a pool: it accepts connections, admits packages, runs
// tasks, answers them, and drains.
//
// # How a call passes through
//
// Each connection has one goroutine that reads (conn.go). It checks a package in the order that
// PROTOCOL.md gives, takes a slot of the row, and either runs the task itself (a package with
// the Alone flag) or hands it to a goroutine that is kept for the next one (runners.go), so
// that a task that blocks holds up no other call. A call (call.go) decodes its payload, runs,
// lets the task answer for its failure, and encodes the result straight into the response
// frame. Slot and counters are settled before the answer goes to the connection's writer
// (writer.go), where answers of several tasks share a write.
//
// # What counts
//
// A task counts as a success when Run returned without an error and its result went into a
// response frame within the limit. It counts as failed when it returned an error, panicked, or
// ended its goroutine, whatever its own handler made of that; and when its result could not be
// encoded (-5) or was over the limit (-9), although it ran.
//
// # A client that does not read
//
// A write that finds the socket full gets 10 s; after that the connection is closed and its
// answers are dropped. Until then tasks that end leave their answers with the connection and
// are done. The connection takes no new package while more than 1 MiB of answers waits, so it
// never holds more than that and the answers of the tasks that were running: at most
// MaxRunningNum of them.
//
// # Time limits
//
// One goroutine watches all tasks with one timer, which is armed for the earliest instant that
// matters and for the audit, once a second while tasks run. An idle worker has no timer but that
// of its age limit. Limits count from the moment the slot was taken.
//
// # Recycling
//
// A worker that has run so many tasks, is so old, or holds so much memory asks for a successor
// (recycle.go) and serves on until the parent tells it to drain.
//
// # The end of a connection
//
// The worker owes an answer for every package that it read. When reading ends, for whatever
// reason, the connection stays until the answers of its calls are out.
package worker
