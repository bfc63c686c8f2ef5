// Package sys is the layer over system calls that differ between Linux and macOS: sockets and peer
// credentials, file locks and watches, process handles, descriptors, the monotonic clock.
package sys
