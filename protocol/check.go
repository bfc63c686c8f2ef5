package protocol

import (
	"encoding/binary"
	"fmt"
)

// MaxDepth is how deep arrays and maps of a body may lie in each other.
const MaxDepth = 64

// Check walks one msgpack value at the head of b and returns its length. It
// fails with an *Error of StatusIllegal on a value that is cut short, that
// claims more elements than bytes are left, that nests deeper than MaxDepth, or
// that holds the reserved code 0xc1. It allocates only for an error.
func Check(b []byte) (n int, err error) {
	n, fault := walk(b, 0, MaxDepth)
	if fault != sound {
		return 0, &Error{Status: StatusIllegal, Text: fault.text(b, n)}
	}
	return n, nil
}

// A fault is what walk found wrong. It becomes a text only where it is reported.
type fault uint8

const (
	sound fault = iota
	cutShort
	tooMany
	tooDeep
	reserved
)

func (f fault) text(b []byte, at int) string {
	switch f {
	case cutShort:
		return fmt.Sprintf("msgpack ends inside the value at byte %d of %d", at, len(b))
	case tooMany:
		return fmt.Sprintf("msgpack array or map at byte %d claims more elements than the %d bytes can hold", at, len(b))
	case tooDeep:
		return fmt.Sprintf("msgpack array or map at byte %d is nested deeper than the limit", at)
	}
	return fmt.Sprintf("msgpack code 0xc1 at byte %d is reserved", at)
}

// walk returns the index behind the value at b[i:], or where it met a fault.
// At most depth arrays and maps may lie in each other.
//
// pending counts the values still to come on all levels. Each takes a byte at
// least, so a claim that cannot be true is refused at its header.
func walk(b []byte, i, depth int) (int, fault) {
	var open [MaxDepth]int // values to come on each level that is left for a deeper one
	level, here, pending := 0, 1, 1
	for pending > 0 {
		for here == 0 {
			level--
			here = open[level]
		}
		if i >= len(b) {
			return i, cutShort
		}
		here--
		pending--
		at, children := i, 0
		switch c := b[i]; {
		case c <= 0x7f || c >= 0xe0:
			i++
			continue
		case c >= 0xa0 && c <= 0xbf:
			i += 1 + int(c&0x1f)
		case c <= 0x8f:
			i++
			children = 2 * int(c&0x0f)
		case c <= 0x9f:
			i++
			children = int(c & 0x0f)
		default:
			var f fault
			if i, children, f = wide(b, i); f != sound {
				return at, f
			}
		}
		if i > len(b) {
			return at, cutShort
		}
		if children == 0 {
			if isContainer(b[at]) && level+1 > depth {
				return at, tooDeep
			}
			continue
		}
		if pending += children; pending > len(b)-i {
			return at, tooMany
		}
		if level+1 > depth {
			return at, tooDeep
		}
		open[level] = here
		level++
		here = children
	}
	return i, sound
}

// wide reads a value whose code says how many bytes of length or content
// follow (0xc0 to 0xdf). It returns the index behind the value, for an array or map
// behind its header, and the number of its children.
func wide(b []byte, i int) (next, children int, f fault) {
	c := b[i]
	left := len(b) - i - 1
	switch c {
	case 0xc0, 0xc2, 0xc3:
		return i + 1, 0, sound
	case 0xc1:
		return i, 0, reserved
	case 0xcc, 0xd0:
		return i + 2, 0, sound
	case 0xcd, 0xd1, 0xd4:
		return i + 3, 0, sound
	case 0xca, 0xce, 0xd2:
		return i + 5, 0, sound
	case 0xcb, 0xcf, 0xd3:
		return i + 9, 0, sound
	case 0xd5:
		return i + 4, 0, sound
	case 0xd6:
		return i + 6, 0, sound
	case 0xd7:
		return i + 10, 0, sound
	case 0xd8:
		return i + 18, 0, sound
	}
	var head, length int
	switch c {
	case 0xc4, 0xc7, 0xd9:
		head = 1
	case 0xc5, 0xc8, 0xda, 0xdc, 0xde:
		head = 2
	default:
		head = 4
	}
	if left < head {
		return i, 0, cutShort
	}
	switch head {
	case 1:
		length = int(b[i+1])
	case 2:
		length = int(binary.BigEndian.Uint16(b[i+1:]))
	default:
		length = int(binary.BigEndian.Uint32(b[i+1:]))
	}
	left -= head
	next = i + 1 + head
	switch c {
	case 0xdc, 0xdd:
		if length > left {
			return i, 0, tooMany
		}
		return next, length, sound
	case 0xde, 0xdf:
		if length > left/2 {
			return i, 0, tooMany
		}
		return next, 2 * length, sound
	case 0xc7, 0xc8, 0xc9:
		length++ // the extension's type
	}
	if length > left {
		return i, 0, cutShort
	}
	return next + length, 0, sound
}

func isContainer(c byte) bool { return c >= 0x80 && c <= 0x9f || c >= 0xdc && c <= 0xdf }
