// Package codec turns Go values into msgpack and back without the silent
// conversions of the msgpack library: a number that does not fit is an error,
// an integer in an interface is an int64 (or a uint64 above it), maps with keys of any
// kind decode. Its input has passed protocol.Check.
package codec
