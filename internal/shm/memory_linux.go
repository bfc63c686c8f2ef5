package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/sys"
)

// Create creates size bytes of zeroed shared memory without a name in the file system, sealed
// against resizing. Its descriptor is close-on-exec. name is only for diagnosis.
func Create(name string, size int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create memory %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), "memfd:"+name)
	if err := f.Truncate(int64(size)); err != nil {
		return nil, errors.Join(fmt.Errorf("size memory %s to %d bytes: %w", name, size, err), f.Close())
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("seal memory %s: %w", name, err), f.Close())
	}
	return f, nil
}

// ReadOnly returns a second descriptor of shared memory, which can only be mapped for reading.
func ReadOnly(f *os.File) (*os.File, error) {
	var ro *os.File
	err := sys.WithFD(f, func(fd int) error {
		opened, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		ro = os.NewFile(uintptr(opened), f.Name())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open %s read-only: %w", f.Name(), err)
	}
	return ro, nil
}

func checkSealed(fd int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return errors.New("it is not sealed against shrinking")
	}
	return nil
}
