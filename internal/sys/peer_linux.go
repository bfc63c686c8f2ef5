package sys

import "golang.org/x/sys/unix"

// BarrierRead says whether CloseRead is an exact barrier: later writes of the peer fail, and what
// it wrote before can still be read.
const BarrierRead = true

func peerOf(fd int) (Cred, error) {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Cred{}, err
	}
	return Cred{PID: int(u.Pid), UID: int(u.Uid)}, nil
}
