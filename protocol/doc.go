// Package protocol is the wire format of a worker's socket: frames, packages
// and responses, and the limits that hold before the msgpack library sees a
// byte. It knows no sockets and has no time-outs of its own. PROTOCOL.md in
// the module's root is the specification.
package protocol
