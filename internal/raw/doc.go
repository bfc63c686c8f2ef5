// Package raw reads and writes the bytes of single msgpack values: the one place that knows
// the codes of the format. It allocates nothing and trusts no length.
package raw
