package sys

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable returns a path that executes the open file s.Exe. It duplicates the descriptor to a
// number above all that the fork uses while it moves s.Files to 0, 1, 2 …
func executable(s Spawn) (path string, release func(), err error) {
	above := len(s.Files)
	for _, f := range s.Files {
		if f == nil {
			continue
		}
		err := WithFD(f, func(fd int) error { above = max(above, fd); return nil })
		if err != nil {
			return "", nil, err
		}
	}
	above += len(s.Files) + 3
	dup := -1
	err = WithFD(s.Exe, func(fd int) (err error) {
		dup, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, above)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", dup), func() { _ = unix.Close(dup) }, nil
}

func wantPidFD(attr *syscall.SysProcAttr) *int {
	attr.PidFD = new(int)
	*attr.PidFD = -1
	return attr.PidFD
}

// An exitWatch waits for a child through its pidfd, in Go's poller.
type exitWatch struct {
	pid   int
	pidfd *os.File // nil: the kernel has no pidfds
}

func newExitWatch(pid int, pidfd *int) exitWatch {
	if *pidfd < 0 {
		return exitWatch{pid: pid}
	}
	// The poller takes only non-blocking descriptors. If this fails, wait blocks a thread.
	_ = unix.SetNonblock(*pidfd, true)
	return exitWatch{pid: pid, pidfd: os.NewFile(uintptr(*pidfd), "pidfd")}
}

func (w exitWatch) wait() {
	if w.pidfd == nil || !w.waitPolled() {
		waitNoReap(unix.P_PID, w.pid, 0)
	}
}

func (w exitWatch) waitPolled() bool {
	raw, err := w.pidfd.SyscallConn()
	if err != nil {
		return errors.Is(err, os.ErrClosed) // reaped
	}
	err = raw.Read(func(fd uintptr) bool { return waitNoReap(unix.P_PIDFD, int(fd), unix.WNOHANG) })
	return err == nil || errors.Is(err, os.ErrClosed)
}

// waitNoReap reports whether the process has ended, or is gone because other code reaped it.
func waitNoReap(idType, id, flags int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(idType, id, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		switch {
		case err == nil:
			return info.Signo != 0
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN): // a non-blocking pidfd: not yet
			return false
		default:
			return true
		}
	}
}

// pidfdSignalProcessGroup makes pidfd_send_signal signal the process group (since Linux 6.9).
const pidfdSignalProcessGroup = 1 << 2

// killGroup signals the group through the pidfd, which cannot refer to another group. On older
// kernels it uses the number, which is valid only while the process is an unreaped child.
func (w exitWatch) killGroup() {
	err := error(unix.ENOSYS)
	if w.pidfd != nil {
		err = WithFD(w.pidfd, func(fd int) error {
			return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, pidfdSignalProcessGroup)
		})
	}
	if err == nil || errors.Is(err, unix.ESRCH) {
		return
	}
	var info unix.Siginfo
	if unix.Waitid(unix.P_PID, w.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil) == nil {
		_ = unix.Kill(-w.pid, unix.SIGKILL)
	}
}

func (w exitWatch) close() {
	if w.pidfd != nil {
		_ = w.pidfd.Close()
	}
}

// OpenSelf opens the running executable, even if its path was replaced or deleted.
func OpenSelf() (*os.File, error) { return os.Open("/proc/self/exe") }

// SetTitle sets the name in /proc/PID/comm, of which the kernel keeps 15 bytes.
func SetTitle(title string) {
	// The file names the process; prctl would name one thread.
	_ = os.WriteFile("/proc/self/comm", []byte(strings.ReplaceAll(title, "\n", " ")), 0)
}
