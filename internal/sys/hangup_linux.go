package sys

import (
	"net"

	"golang.org/x/sys/unix"
)

// AwaitHangup waits until the peer has closed c, also after CloseRead. It does not notice that the
// peer has only shut down its writing side. It returns the error of c's reading deadline or of c's
// own end.
func AwaitHangup(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) (done bool) {
		poll := []unix.PollFd{{Fd: int32(fd)}}
		for {
			if _, failed = unix.Poll(poll, 0); failed != unix.EINTR {
				break
			}
		}
		return failed != nil || poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	if err == nil {
		err = failed
	}
	return err
}
