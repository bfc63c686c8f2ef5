// Package codec turns Go values into msgpack and back without the silent
// conversions of the msgpack library: a number that does not fit is an error,
// an integer in an interface is an int64 (or a uint64 above it), maps with keys of any
// kind decode. Its input has passed protocol.Check.
//
// Fields are named as the library names them: msgpack tags with a name, "-", omitempty,
// inline, noinline, alias and as_array; intern is refused. Types that implement the
// library's CustomEncoder, Marshaler and their counterparts, or those of package encoding,
// are encoded and decoded by the library. What msgpack.Register knows of a type without such
// methods has no effect on decoding, nor on encoding where the library takes no part.
package codec
