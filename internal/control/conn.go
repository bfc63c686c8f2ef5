package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	maxLine   = 1 << 20
	sendLimit = time.Second
)

// A Conn sends and receives Messages as JSON lines of at most 1 MiB. Send is safe for concurrent
// use; only one goroutine may call Receive.
type Conn struct {
	c net.Conn
	r *bufio.Reader

	mu   sync.Mutex // held while a line is written
	rest []byte     // of a line that was written in part; it precedes the next one
}

// NewConn returns a Conn over the stream c, which it takes over.
func NewConn(c net.Conn) *Conn {
	return &Conn{c: c, r: bufio.NewReader(c)}
}

// Send writes one message. It blocks for at most a second. If the other side reads nothing for that
// long, the error wraps os.ErrDeadlineExceeded, and the message is dropped.
func (c *Conn) Send(m Message) error {
	deadline := time.Now().Add(sendLimit)
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	line = append(line, '\n')
	if len(line) > maxLine {
		return fmt.Errorf("send %s: the line has %d bytes, the limit is %d", m.Kind, len(line), maxLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.write(line, deadline); err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	return nil
}

// write sends the rest of an earlier line, then line. A line that was written in part counts as
// sent, because the rest must follow it.
func (c *Conn) write(line []byte, deadline time.Time) error {
	if err := c.c.SetWriteDeadline(deadline); err != nil {
		return err
	}
	n, err := c.c.Write(c.rest)
	c.rest = c.rest[n:]
	if err != nil {
		return err
	}
	n, err = c.c.Write(line)
	if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		c.rest, err = line[n:], nil
	}
	return err
}

// Receive waits for the next message. The error is io.EOF if the stream has ended, even within a
// line.
func (c *Conn) Receive() (Message, error) {
	line, err := c.readLine()
	if err != nil {
		return Message{}, err
	}
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return Message{}, fmt.Errorf("receive: a line of %d bytes: %w", len(line), err)
	}
	return m, nil
}

func (c *Conn) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("receive: a line has more than %d bytes", maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("receive: %w", err)
		}
	}
}

// Close closes the stream. A blocked Receive returns.
func (c *Conn) Close() error { return c.c.Close() }
