// Package client carries one process's calls to the workers: it chooses,
// connects, sends, waits within one budget, and says what a caller may believe
// after a failure.
//
// A call goes to the least loaded worker (call.go). While few are in flight to
// that worker, each has a connection of its own, where its caller writes and reads
// itself (own.go); more of them share one connection, where frames share writes
// and answers share reads (shared.go, flush.go). Both begin with the worker's
// greeting (dial.go) and are kept for later calls (peer.go). One timer watches the
// deadlines of all (sweep.go). What a failure proves is one function of the
// evidence (belief.go).
//
// Locks are taken in this order: a peer's, the sweeper's, a shared connection's.
package client
