package codec

import "net"

// Lent is the large memory of a value that AppendLending did not copy. The zero Lent is empty. The
// memory must not change until WriteTo has written it or Reset has dropped it.
type Lent struct {
	pieces []piece
	size   int
	parts  net.Buffers // of one write
	rest   net.Buffers // of parts, while they are written
}

// A piece goes before the byte at index at.
type piece struct {
	at   int
	data []byte
}

// Size returns how many bytes l holds.
func (l *Lent) Size() int {
	if l == nil {
		return 0
	}
	return l.size
}

// Reset drops the memory.
func (l *Lent) Reset() {
	clear(l.pieces)
	clear(l.parts)
	l.pieces, l.size, l.parts, l.rest = l.pieces[:0], 0, l.parts[:0], nil
}

// WriteTo writes b with the pieces in their places. It returns how many bytes the connection took.
func (l *Lent) WriteTo(conn net.Conn, b []byte) (int, error) {
	l.parts = l.parts[:0]
	from := 0
	for _, p := range l.pieces {
		l.parts = append(l.parts, b[from:p.at], p.data)
		from = p.at
	}
	l.parts = append(l.parts, b[from:])
	l.rest = l.parts
	n, err := l.rest.WriteTo(conn)
	return int(n), err
}

// takes reports whether memory of n bytes is to be lent.
func (l *Lent) takes(n int) bool { return l != nil && n >= Large }

// add records that data follows dst, and returns dst.
func (l *Lent) add(dst, data []byte) []byte {
	l.pieces = append(l.pieces, piece{len(dst), data})
	l.size += len(data)
	return dst
}
