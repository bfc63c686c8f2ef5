// Package protocol reads and writes the wire format of a worker's socket: frames, packages,
// responses, and the limits that are checked before a msgpack library sees a byte. It opens no
// sockets and sets no time-outs. PROTOCOL.md in the module's root is the specification.
//
// All functions are safe for concurrent use. A Reader is not.
package protocol
