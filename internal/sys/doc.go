// Package sys holds what differs between Linux and macOS: sealed memory, peer credentials, process
// handles, the monotonic clock, futexes, descriptors.
package sys
