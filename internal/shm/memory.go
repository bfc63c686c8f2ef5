package shm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/sys"
)

// Map maps the first size bytes of f, which is shared memory from Create. It fails if the file is
// smaller or (on Linux) not sealed against shrinking, because an access beyond the end would kill
// the process.
func Map(f *os.File, size int, writable bool) ([]byte, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	var b []byte
	err := sys.WithFD(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if size <= 0 || st.Size < int64(size) {
			return fmt.Errorf("it holds %d bytes, %d are needed", st.Size, size)
		}
		if err := checkSealed(fd); err != nil {
			return err
		}
		var err error
		b, err = unix.Mmap(fd, 0, size, prot, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return b, nil
}

// Unmap removes the mapping b, which must not be used afterwards.
func Unmap(b []byte) error { return unix.Munmap(b) }
