//go:build !linux

package sys

import "golang.org/x/sys/unix"

// BarrierRead says whether CloseRead is an exact barrier: later writes of the peer fail, and what
// it wrote before can still be read.
const BarrierRead = false

func peerOf(fd int) (Cred, error) {
	x, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Cred{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return Cred{}, err
	}
	return Cred{PID: pid, UID: int(x.Uid)}, nil
}
