//go:build !linux

package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable returns the path, because this system cannot execute a descriptor.
func executable(s Spawn) (path string, release func(), err error) {
	return s.Exe.Name(), func() {}, nil
}

func wantPidFD(*syscall.SysProcAttr) *int { return nil }

// An exitWatch waits for a child with a kqueue.
type exitWatch struct{ pid int }

func newExitWatch(pid int, _ *int) exitWatch { return exitWatch{pid: pid} }

func (w exitWatch) wait() {
	kq, err := unix.Kqueue()
	if err != nil {
		return // Reap waits instead
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	var change unix.Kevent_t
	unix.SetKevent(&change, w.pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	for {
		// ESRCH: the process has ended already.
		_, err := unix.Kevent(kq, []unix.Kevent_t{change}, events, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (w exitWatch) killGroup() { _ = unix.Kill(-w.pid, unix.SIGKILL) }

func (w exitWatch) close() {}

// OpenSelf opens the running executable by its path.
func OpenSelf() (*os.File, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// SetTitle does nothing, since this system shows argv[0].
func SetTitle(string) {}
