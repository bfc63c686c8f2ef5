package sys

import (
	"fmt"
	"net"
)

// A Cred says who is at the other end of a connection.
type Cred struct{ PID, UID int }

// Peer returns who is at the other end: who connected, or, for a client, the
// process that called listen last.
func Peer(c *net.UnixConn) (Cred, error) {
	var cred Cred
	err := control(c, func(fd int) (err error) {
		cred, err = peerOf(fd)
		return err
	})
	if err != nil {
		return Cred{}, fmt.Errorf("peer credentials: %w", err)
	}
	return cred, nil
}

// CloseRead shuts the reading side down; see BarrierRead.
func CloseRead(c *net.UnixConn) error { return c.CloseRead() }
