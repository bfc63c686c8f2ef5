package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"

	"github.com/taskd-go/task/bench/internal/measure"
)

// The bare echoes' frame: the length of the body and the caller's number, four bytes each.
// acceptOnly in the number asks for an answer without a body.
const (
	headSize   = 8
	acceptOnly = 1 << 31
)

// readBuffer takes the frame of a small call in one read; what is larger is read straight into its
// place.
const readBuffer = 4 << 10

func putHead(b []byte, size int, id uint32) {
	binary.BigEndian.PutUint32(b, uint32(size))
	binary.BigEndian.PutUint32(b[4:], id)
}

// readFrame returns the frame's number and its body, which is in buf or, when that is too small, in
// a new and larger one.
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

// serveEcho answers each frame where it was read. Frames that came in one read are answered in one
// write.
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

// openEcho gives each caller a connection of its own, which it writes and reads itself.
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
