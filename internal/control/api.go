package control

import "net"

// A Conn sends and receives Messages; Send is safe for concurrent use.
type Conn struct{}

func NewConn(c net.Conn) *Conn            { panic("stub") }
func (c *Conn) Send(m Message) error      { panic("stub") } // never blocks for more than a second
func (c *Conn) Receive() (Message, error) { panic("stub") } // io.EOF: the other side is gone
func (c *Conn) Close() error              { panic("stub") }
