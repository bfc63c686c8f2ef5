// Package protocol reads and writes the wire format of a worker's socket: frames, packages and
// responses. It checks the limits of a body before a msgpack library decodes it. It opens no
// sockets and sets no time-outs. PROTOCOL.md in the module's root is the specification.
//
// All functions are safe for concurrent use. A Reader is not.
package protocol
