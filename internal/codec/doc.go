// Package codec encodes Go values as msgpack and decodes them without the silent conversions of the
// msgpack library: a number that does not fit is an error, an integer in an interface becomes an
// int64 (or a uint64 if it is larger), and maps with keys of any kind decode. Its input must have
// passed protocol.Check.
//
// Fields have the names that the library gives them. Tags may have a name, "-", omitempty, inline,
// noinline, alias and as_array; intern is an error. The library encodes and decodes types that
// implement its CustomEncoder, its Marshaler, the interfaces of package encoding, or their
// counterparts. msgpack.Register has no effect on the decoding of other types, nor on their
// encoding where the library takes no part.
package codec
