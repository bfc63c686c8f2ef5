// Package raw reads and writes the bytes of single msgpack values. It knows the codes of the
// format, allocates nothing, and checks each length against the bytes that are left.
package raw
