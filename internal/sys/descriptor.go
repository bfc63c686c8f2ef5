package sys

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// WithFD calls fn with the descriptor of a file or socket. Unlike Fd, it does not change the
// blocking mode, which all holders of the open file share, even in other processes.
func WithFD(c syscall.Conn, fn func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = fn(int(fd)) })
	return errors.Join(err, inner)
}

// AdoptFiles takes over the descriptors of a re-executed worker, before main. It sets close-on-exec
// on the descriptors from 3 to 3+ours-1, and closes the inherited ones above them, which it
// recognises by the lack of close-on-exec.
func AdoptFiles(ours int) {
	entries, err := os.ReadDir(fdDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if fd < 3+ours {
			unix.CloseOnExec(fd)
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// fdDir returns the directory that lists the open descriptors of this process.
func fdDir() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/fd"
	}
	return "/dev/fd"
}
