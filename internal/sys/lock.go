package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked says that somebody has a lock.
var ErrLocked = errors.New("the lock is held")

// Lock takes path's flock without waiting, creates the file (mode 0600) where
// there is none, and writes our pid into it. Closing f gives the lock back. The error wraps ErrLocked
// when another process has it; holder is then its pid, 0 when unknown.
func Lock(path string) (f *os.File, holder int, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, 0, fmt.Errorf("lock: %w", err)
		}
		err = control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder := readPID(f)
			return nil, holder, errors.Join(fmt.Errorf("lock %s: %w (pid %d)", path, ErrLocked, holder), f.Close())
		}
		if err != nil {
			return nil, 0, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if !names(path, f) {
			f.Close() // its last holder removed it between our open and our lock
			continue
		}
		if err := writePID(f); err != nil { // the disk is full
			return nil, 0, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.Remove(path), f.Close())
		}
		return f, 0, nil
	}
}

func names(path string, f *os.File) bool {
	at, err := os.Lstat(path)
	if err != nil {
		return false
	}
	ours, err := f.Stat()
	return err == nil && os.SameFile(at, ours)
}

func writePID(f *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
