// Package interop holds tests that speak the protocol with a msgpack library
// that this project does not use: what they read and write, another language's
// client can.
package interop
