package sys

import (
	"fmt"
	"net"
	"os"
)

// A Cred names a process and its user.
type Cred struct{ PID, UID int }

// Trusted reports whether the process belongs to the user of this process or to root.
func (c Cred) Trusted() bool { return c.UID == 0 || c.UID == os.Getuid() }

// Check returns an error that names both users if the process is not trusted.
func (c Cred) Check() error {
	if c.Trusted() {
		return nil
	}
	return fmt.Errorf("the process %d at the other end belongs to user %d, we are user %d", c.PID, c.UID, os.Getuid())
}

// Peer returns the process at the other end of c: the one that connected or, for a client, the one
// that last called listen.
func Peer(c *net.UnixConn) (Cred, error) {
	var cred Cred
	err := WithFD(c, func(fd int) (err error) {
		cred, err = peerOf(fd)
		return err
	})
	if err != nil {
		return Cred{}, fmt.Errorf("peer credentials: %w", err)
	}
	return cred, nil
}

// CloseRead shuts down the reading side of c; see BarrierRead.
func CloseRead(c *net.UnixConn) error { return c.CloseRead() }
