// Package sys is the layer over system calls that differ between Linux and macOS: shared memory,
// peer credentials, file locks and watches, process handles, the monotonic clock, futexes,
// descriptors.
package sys
