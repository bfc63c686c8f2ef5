package sys

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// listen sets the mode of the socket before bind, which gives that mode to the file, so that the
// file never has another one.
func listen(path string) (*net.UnixListener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return nil, errors.Join(os.NewSyscallError("fchmod", err), unix.Close(fd))
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	if err := unix.Listen(fd, backlog()); err != nil {
		return nil, errors.Join(os.NewSyscallError("listen", err), unix.Close(fd), os.Remove(path))
	}
	return listenerOf(fd, path)
}

func backlog() int {
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return maxBacklog // the kernel caps it itself
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return maxBacklog
	}
	return min(n, maxBacklog)
}
