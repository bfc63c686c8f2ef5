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

// ErrLocked is the error of a lock that is held already.
var ErrLocked = errors.New("the lock is held")

// TryLock takes the exclusive flock of the open file f, without waiting. Closing f releases the
// lock. The error wraps ErrLocked if the lock is held through another open file.
func TryLock(f *os.File) error {
	err := WithFD(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Lock takes the flock of the file at path, without waiting, and writes this process's pid into the
// file. It creates the file with mode 0600 if there is none. Closing f releases the lock. If
// another process holds the lock, the error wraps ErrLocked, and holder is the pid of that process,
// or 0 if unknown.
func Lock(path string) (f *os.File, holder int, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, 0, fmt.Errorf("lock: %w", err)
		}
		err = TryLock(f)
		if errors.Is(err, ErrLocked) {
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
