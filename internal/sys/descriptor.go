package sys

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// control runs fn with the descriptor of a file or socket. Other than Fd it leaves the blocking
// mode alone, which is shared by all holders of the open file, in other processes too.
func control(c syscall.Conn, fn func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = fn(int(fd)) })
	return errors.Join(err, inner)
}

// AdoptFiles is called in a re-executed worker before main: it sets close-on-exec on descriptors 3
// … 3+ours-1, and closes all above them that were inherited, which are those without close-on-exec:
// Go opens its own with it.
func AdoptFiles(ours int) {
	entries, err := os.ReadDir(fdDir)
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
