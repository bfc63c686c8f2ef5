//go:build !linux

package sys

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// WatchGone returns a channel that receives a name each time that file of dir is removed or renamed
// away. If dir itself goes, the channel receives all names. Nothing polls. stop ends the watch and
// waits for its end. The channel is never closed.
func WatchGone(dir string, names []string) (gone <-chan string, stop func(), err error) {
	q, err := newDirQueue(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	w := newWatch(dir, names)
	reported := w.missing()
	go w.run(func() ([]string, error) {
		if err := q.wait(); err != nil {
			return nil, err
		}
		missing := w.missing()
		fresh := slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return slices.Contains(reported, name) })
		reported = missing
		return fresh, nil
	})
	return w.gone, func() { w.stop(q.interrupt); q.close() }, nil
}

// A dirQueue is a kqueue that reports changes of a directory. Closing its pipe makes wait return.
type dirQueue struct {
	kq        int
	dir, r, w *os.File
}

var errInterrupted = errors.New("interrupted")

func newDirQueue(path string) (*dirQueue, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, errors.Join(err, dir.Close(), r.Close(), w.Close())
	}
	unix.CloseOnExec(kq)
	q := &dirQueue{kq: kq, dir: dir, r: r, w: w}
	changes := make([]unix.Kevent_t, 2)
	unix.SetKevent(&changes[0], int(dir.Fd()), unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
	changes[0].Fflags = unix.NOTE_WRITE | unix.NOTE_DELETE | unix.NOTE_RENAME
	unix.SetKevent(&changes[1], int(r.Fd()), unix.EVFILT_READ, unix.EV_ADD)
	if _, err := unix.Kevent(kq, changes, nil, nil); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *dirQueue) wait() error {
	events := make([]unix.Kevent_t, 2)
	for {
		n, err := unix.Kevent(q.kq, nil, events, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			if e.Filter == unix.EVFILT_READ {
				return errInterrupted
			}
		}
		return nil
	}
}

func (q *dirQueue) interrupt() { _ = q.w.Close() }

func (q *dirQueue) close() {
	_ = unix.Close(q.kq)
	_ = q.dir.Close()
	_ = q.r.Close()
	_ = q.w.Close()
}
