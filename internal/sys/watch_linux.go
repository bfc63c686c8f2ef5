package sys

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const watched = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// WatchGone returns a channel that receives a name each time that file of dir is removed, renamed
// away, or replaced by a rename. If dir itself goes, the channel receives all names. Nothing polls.
// stop ends the watch and waits for its end. The channel is never closed.
func WatchGone(dir string, names []string) (gone <-chan string, stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, dir, watched); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	w := newWatch(dir, names)
	go w.run(func() ([]string, error) { return w.readEvents(f) })
	return w.gone, func() { w.stop(func() { f.Close() }) }, nil
}

// readEvents waits for events and returns the names that they concern. After an error there are no
// more: the watch was stopped, or dir is gone.
func (w *watch) readEvents(f *os.File) (gone []string, err error) {
	buf := make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	n, err := f.Read(buf)
	if err != nil {
		return nil, err
	}
	for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
		mask := binary.NativeEndian.Uint32(rest[4:])
		length := int(binary.NativeEndian.Uint32(rest[12:]))
		name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length], "\x00"))
		rest = rest[unix.SizeofInotifyEvent+length:]
		switch {
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
			return w.names, errDirGone
		case mask&unix.IN_Q_OVERFLOW != 0:
			gone = append(gone, w.missing()...)
		case slices.Contains(w.names, name):
			gone = append(gone, name)
		}
	}
	return gone, nil
}
