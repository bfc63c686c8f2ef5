//go:build !linux

package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/sys"
)

// Create creates size bytes of zeroed shared memory, in a file that it unlinks at once. Its
// descriptor is close-on-exec. name is only for diagnosis.
func Create(name string, size int) (*os.File, error) {
	f, err := os.CreateTemp("", name)
	if err != nil {
		return nil, fmt.Errorf("create memory %s: %w", name, err)
	}
	if err := errors.Join(os.Remove(f.Name()), f.Truncate(int64(size))); err != nil {
		return nil, errors.Join(fmt.Errorf("size memory %s to %d bytes: %w", name, size, err), f.Close())
	}
	return f, nil
}

// ReadOnly returns a second descriptor of shared memory. This system cannot reopen an unlinked file
// with fewer rights, so only the argument of Map makes the mapping read-only.
func ReadOnly(f *os.File) (*os.File, error) {
	var ro *os.File
	err := sys.WithFD(f, func(fd int) error {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return err
		}
		ro = os.NewFile(uintptr(dup), f.Name())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return ro, nil
}

func checkSealed(int) error { return nil }
