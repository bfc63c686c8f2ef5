// Package client delivers the calls of one process to the workers of a pool, and reports what a
// failed call proves.
//
// A call goes to the least loaded worker (call.go). Up to two calls in flight to a worker have a
// connection each, which their callers write and read themselves (exclusive.go). Further calls
// share one connection, where several frames go out in one write and one goroutine reads the
// answers (shared.go, sharedwrite.go, sharedread.go). Each connection begins with the worker's
// greeting (dial.go) and is kept for later calls (workerconns.go). One timer serves the deadlines
// of all calls (deadlines.go). The method evidence.delivery decides what is known about a failed
// call (delivery.go).
//
// Locks are taken in this order: workerConns, deadlineTimer, shared.
package client
