package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// changes are those of a file.
type changes struct {
	events *os.File
	stop   func() bool
}

// watch costs nothing while the file stays as it is.
func watch(ctx context.Context, file string) (*changes, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	c := &changes{events: os.NewFile(uintptr(fd), "inotify")}
	if _, err := unix.InotifyAddWatch(fd, file, unix.IN_MODIFY|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF); err != nil {
		c.events.Close()
		return nil, &os.PathError{Op: "inotify_add_watch", Path: file, Err: err}
	}
	c.stop = context.AfterFunc(ctx, func() { c.events.Close() })
	return c, nil
}

var errGone = errors.New("it is gone")

// next waits for changes and takes all that there are.
func (c *changes) next() error {
	var buf [64 * unix.SizeofInotifyEvent]byte // events of a file carry no name
	n, err := c.events.Read(buf[:])
	for rest := buf[:max(n, 0)]; len(rest) >= unix.SizeofInotifyEvent; rest = rest[unix.SizeofInotifyEvent:] {
		if binary.NativeEndian.Uint32(rest[4:])&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0 {
			return errGone
		}
	}
	return err
}

func (c *changes) close() {
	c.stop()
	c.events.Close()
}
