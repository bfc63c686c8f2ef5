package sys

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxBacklog is how many connections may wait to be accepted, unless the system's limit is lower.
const maxBacklog = 4096

// Listen returns a listener on a new Unix stream socket at path, which must not exist. The file has
// mode 0600 from the moment it is visible, whatever the umask is. The backlog is 4096, or the
// system's limit if that is lower. Close does not remove the file.
func Listen(path string) (*net.UnixListener, error) {
	var sa unix.RawSockaddrUnix
	if longest := len(sa.Path) - 1; len(path) > longest {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, the system allows %d", path, len(path), longest)
	}
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

// Relisten calls listen again on an inherited socket, so that Peer returns this process at the
// other end.
func Relisten(l *net.UnixListener) error {
	err := WithFD(l, func(fd int) error { return unix.Listen(fd, backlog()) })
	if err != nil {
		return fmt.Errorf("listen again on %s: %w", l.Addr(), err)
	}
	return nil
}

// listenerOf returns a listener on a socket that listens already, and takes over fd. If it fails,
// it removes the file.
func listenerOf(fd int, path string) (*net.UnixListener, error) {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil { // out of descriptors
		return nil, errors.Join(err, os.Remove(path))
	}
	ul, ok := l.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("it is a %T", l)
	}
	return ul, nil
}

// A FileID identifies a file independently of its path.
type FileID struct{ Dev, Ino uint64 }

// IDOf returns the identity of the file at path. It does not follow symbolic links.
func IDOf(path string) (FileID, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return FileID{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return FileID{Dev: uint64(st.Dev), Ino: st.Ino}, nil
}
