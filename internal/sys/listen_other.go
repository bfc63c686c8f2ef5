//go:build !linux

package sys

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen binds to a temporary name and renames the file when its mode is set and the socket
// listens.
func listen(path string) (*net.UnixListener, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, os.NewSyscallError("bind", unix.EADDRINUSE)
	}
	fd, err := socket()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	temporary := filepath.Join(filepath.Dir(path), ".t"+strconv.FormatUint(uint64(os.Getpid()), 36))
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: temporary}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	err = errors.Join(os.Chmod(temporary, 0o600), unix.Listen(fd, backlog()), os.Rename(temporary, path))
	if err != nil {
		_ = os.Remove(temporary)
		return nil, errors.Join(err, unix.Close(fd))
	}
	return listenerOf(fd, path)
}

// socket holds the fork lock, because the flags cannot be set at creation.
func socket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	return fd, unix.SetNonblock(fd, true)
}

func backlog() int {
	n, err := unix.SysctlUint32("kern.ipc.somaxconn")
	if err != nil {
		return 128
	}
	return min(int(n), maxBacklog)
}
