package protocol

import (
	"encoding/binary"
	"math"
)

// appendUint appends the shortest form of n.
func appendUint(dst []byte, n uint64) []byte {
	switch {
	case n <= 0x7f:
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), n)
}

// appendInt appends a short form of n.
func appendInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(dst, uint64(n))
	case n >= -32:
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(n))
}

// appendString appends s as a str.
func appendString[S []byte | string](dst []byte, s S) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

// appendMapHead appends the head of a map of n pairs.
func appendMapHead(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x80|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xde), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdf), uint32(n))
}

// The readers below take one value that walk has passed, from its first byte to its last.

const (
	codeNil   = 0xc0
	codeFalse = 0xc2
	codeTrue  = 0xc3
)

// number reads an integer of any encoding: its bits in two's complement, and whether it is negative.
func number(v []byte) (bits uint64, negative, ok bool) {
	c := v[0]
	switch {
	case c <= 0x7f:
		return uint64(c), false, true
	case c >= 0xe0:
		return uint64(int64(int8(c))), true, true
	}
	signed := c >= 0xd0
	switch c {
	case 0xcc:
		bits = uint64(v[1])
	case 0xcd:
		bits = uint64(binary.BigEndian.Uint16(v[1:]))
	case 0xce:
		bits = uint64(binary.BigEndian.Uint32(v[1:]))
	case 0xcf, 0xd3:
		bits = binary.BigEndian.Uint64(v[1:])
	case 0xd0:
		bits = uint64(int64(int8(v[1])))
	case 0xd1:
		bits = uint64(int64(int16(binary.BigEndian.Uint16(v[1:]))))
	case 0xd2:
		bits = uint64(int64(int32(binary.BigEndian.Uint32(v[1:]))))
	default:
		return 0, false, false
	}
	return bits, signed && int64(bits) < 0, true
}

// readUint reads an integer that is not negative.
func readUint(v []byte) (uint64, bool) {
	bits, negative, ok := number(v)
	return bits, ok && !negative
}

// readInt reads an integer that fits an int64.
func readInt(v []byte) (int64, bool) {
	bits, negative, ok := number(v)
	return int64(bits), ok && (negative || bits <= math.MaxInt64)
}

// readString returns the content of a str.
func readString(v []byte) ([]byte, bool) {
	switch c := v[0]; {
	case c >= 0xa0 && c <= 0xbf:
		return v[1:], true
	case c == 0xd9:
		return v[2:], true
	case c == 0xda:
		return v[3:], true
	case c == 0xdb:
		return v[5:], true
	}
	return nil, false
}

// arrayHead reads the number of elements at the head of b, which may be cut short anywhere.
func arrayHead(b []byte) (n, head int, ok bool) {
	switch {
	case len(b) >= 1 && b[0]&0xf0 == 0x90:
		return int(b[0] & 0x0f), 1, true
	case len(b) >= 3 && b[0] == 0xdc:
		return int(binary.BigEndian.Uint16(b[1:])), 3, true
	case len(b) >= 5 && b[0] == 0xdd:
		return int(binary.BigEndian.Uint32(b[1:])), 5, true
	}
	return 0, 0, false
}

// mapHead reads the number of pairs of a map.
func mapHead(v []byte) (n, head int, ok bool) {
	switch {
	case v[0]&0xf0 == 0x80:
		return int(v[0] & 0x0f), 1, true
	case v[0] == 0xde:
		return int(binary.BigEndian.Uint16(v[1:])), 3, true
	case v[0] == 0xdf:
		return int(binary.BigEndian.Uint32(v[1:])), 5, true
	}
	return 0, 0, false
}
