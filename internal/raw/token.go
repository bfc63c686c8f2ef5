package raw

import (
	"encoding/binary"
	"math"
)

// A Kind is the kind of a value, which its first byte determines.
type Kind uint8

// The kinds of values, and two kinds of errors.
const (
	Reserved Kind = iota // the code 0xc1, which the format reserves
	Cut                  // the bytes end within the value
	Nil
	Bool
	Int // below 0
	Uint
	Float
	Str
	Bin
	Ext
	Array
	Map
)

var kindNames = [...]string{
	"code 0xc1", "value", "nil", "bool", "integer", "integer", "float", "string", "bytes", "extension", "array", "map",
}

func (k Kind) String() string { return kindNames[k] }

// A Token is a scalar value, or the head of an array or map.
type Token struct {
	Kind Kind
	Bits uint64 // Bool: 0 or 1; Int, Uint: two's complement; Float: the bits of a float64
	Len  int    // Array: elements; Map: pairs; Str, Bin, Ext: bytes of the content, which ends the value
}

// A shape says how the bytes after a code are read.
type shape struct {
	kind  Kind
	width uint8 // bytes of the number or length after the code
	fixed uint8 // Ext: bytes of the content, if the code determines them
}

// shapes are the shapes of the codes 0xc0 to 0xdf.
var shapes = [32]shape{
	{kind: Nil}, {kind: Reserved}, {kind: Bool}, {kind: Bool},
	{kind: Bin, width: 1}, {kind: Bin, width: 2}, {kind: Bin, width: 4},
	{kind: Ext, width: 1}, {kind: Ext, width: 2}, {kind: Ext, width: 4},
	{kind: Float, width: 4}, {kind: Float, width: 8},
	{kind: Uint, width: 1}, {kind: Uint, width: 2}, {kind: Uint, width: 4}, {kind: Uint, width: 8},
	{kind: Int, width: 1}, {kind: Int, width: 2}, {kind: Int, width: 4}, {kind: Int, width: 8},
	{kind: Ext, fixed: 1}, {kind: Ext, fixed: 2}, {kind: Ext, fixed: 4}, {kind: Ext, fixed: 8}, {kind: Ext, fixed: 16},
	{kind: Str, width: 1}, {kind: Str, width: 2}, {kind: Str, width: 4},
	{kind: Array, width: 2}, {kind: Array, width: 4},
	{kind: Map, width: 2}, {kind: Map, width: 4},
}

// Next returns the token at b[i:] and the index after it. If the bytes end within the token, its
// Kind is Cut.
func Next(b []byte, i int) (t Token, next int) {
	if uint(i) >= uint(len(b)) {
		return Token{Kind: Cut}, i
	}
	c := b[i]
	switch {
	case c <= 0x7f:
		return Token{Kind: Uint, Bits: uint64(c)}, i + 1
	case c >= 0xe0:
		return Token{Kind: Int, Bits: uint64(int64(int8(c)))}, i + 1
	case c <= 0x8f:
		return Token{Kind: Map, Len: int(c & 0x0f)}, i + 1
	case c <= 0x9f:
		return Token{Kind: Array, Len: int(c & 0x0f)}, i + 1
	case c <= 0xbf:
		return content(b, Str, uint64(c&0x1f), i+1)
	}
	s := shapes[c&0x1f]
	i++
	if len(b)-i < int(s.width) {
		return Token{Kind: Cut}, i
	}
	n := bigEndian(b[i:], s.width)
	i += int(s.width)
	switch s.kind {
	case Bool:
		n = uint64(c & 1)
	case Int:
		n = signed(n, s.width)
		if int64(n) >= 0 {
			s.kind = Uint
		}
	case Float:
		if s.width == 4 {
			n = math.Float64bits(float64(math.Float32frombits(uint32(n))))
		}
	case Str, Bin:
		return content(b, s.kind, n, i)
	case Ext:
		// The byte before the content is the type of the extension.
		return content(b, Ext, n+uint64(s.fixed), i+1)
	case Array, Map:
		return Token{Kind: s.kind, Len: int(min(n, math.MaxInt/2))}, i
	}
	return Token{Kind: s.kind, Bits: n}, i
}

// content returns the token of a value whose content is the n bytes at b[i].
func content(b []byte, k Kind, n uint64, i int) (Token, int) {
	if i > len(b) || n > uint64(len(b)-i) {
		return Token{Kind: Cut}, i
	}
	return Token{Kind: k, Len: int(n)}, i + int(n)
}

func bigEndian(b []byte, width uint8) uint64 {
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// signed extends the sign of a number of width bytes.
func signed(n uint64, width uint8) uint64 {
	shift := 64 - 8*int(width)
	return uint64(int64(n<<shift) >> shift)
}

// Int64 returns the integer of t; ok is false if t is not an integer or does not fit.
func (t Token) Int64() (n int64, ok bool) {
	return int64(t.Bits), t.Kind == Int || t.Kind == Uint && t.Bits <= math.MaxInt64
}
