package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"

	"github.com/taskd-go/task/bench/internal/measure"
)

// A frame of the bare echoes begins with the length of the body and the number of the caller, four
// bytes each. The bit acceptOnly in the number asks for an answer without a body.
const (
	headSize   = 8
	acceptOnly = 1 << 31
)

// readBuffer is the size of the read buffer. A small call needs one read. Larger ones are read
// without the buffer.
const readBuffer = 4 << 10

func putHead(b []byte, size int, id uint32) {
	binary.BigEndian.PutUint32(b, uint32(size))
	binary.BigEndian.PutUint32(b[4:], id)
}

// readFrame returns the number and the body of the next frame. The body is in buf, or in a new
// buffer if buf is too small.
func readFrame(r io.Reader, buf []byte) (id uint32, body []byte, err error) {
	head := buf[:headSize]
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint32(head))
	id = binary.BigEndian.Uint32(head[4:])
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	body = buf[:size]
	_, err = io.ReadFull(r, body)
	return id, body, err
}

// serveEcho answers frames in the goroutine that reads them. It answers frames that arrived in one
// read with one write.
func serveEcho(l net.Listener) error {
	return accept(l, func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReaderSize(c, readBuffer)
		buf := make([]byte, readBuffer)
		var out []byte
		for {
			id, body, err := readFrame(r, buf)
			if err != nil {
				return
			}
			buf = body[:cap(body)]
			if id&acceptOnly != 0 {
				body = nil
			}
			out = appendFrame(out, id, body)
			if r.Buffered() > 0 {
				continue
			}
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	})
}

func appendFrame(out []byte, id uint32, body []byte) []byte {
	var head [headSize]byte
	putHead(head[:], len(body), id)
	return append(append(out, head[:]...), body...)
}

// openEcho gives each caller a connection, which the caller writes and reads itself.
func openEcho(sockets []string) (session, error) {
	conns := newConnections(sockets, maxCallers, func(c net.Conn) net.Conn { return c })
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			conn, err := conns.of(i)
			return echoCall(conn, c, payload), err
		},
		close: conns.close,
	}, nil
}

func echoCall(conn net.Conn, c measure.Case, payload []byte) func() error {
	r := bufio.NewReaderSize(conn, readBuffer)
	buf := make([]byte, readBuffer)
	var out []byte
	var id uint32
	answer := payload
	if c.Kind == kindAsync || c.Kind == kindAsyncMany {
		id, answer = acceptOnly, nil
	}
	return func() error {
		out = out[:0]
		for range c.Tasks() {
			out = appendFrame(out, id, payload)
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
		for range c.Tasks() {
			_, body, err := readFrame(r, buf)
			if err != nil {
				return err
			}
			buf = body[:cap(body)]
			if err := same(body, answer); err != nil {
				return err
			}
		}
		return nil
	}
}
