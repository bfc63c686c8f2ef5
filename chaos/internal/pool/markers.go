package pool

import (
	"os"
	"syscall"
)

// maxMarkers is the largest number of calls in one run. The file is sparse.
const maxMarkers = 1 << 28

// markers is a mapped file with one byte per call. A task sets its byte when it begins, and the
// byte stays set when the process is killed.
type markers struct {
	path  string
	bytes []byte
}

func newMarkers(path string) (*markers, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(maxMarkers); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return openMarkers(path)
}

func openMarkers(path string) (*markers, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bytes, err := syscall.Mmap(int(f.Fd()), 0, maxMarkers, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &markers{path: path, bytes: bytes}, nil
}

func (m *markers) set(id int64)      { m.bytes[id] = 1 }
func (m *markers) ran(id int64) bool { return m.bytes[id] == 1 }
func (m *markers) close() error      { return syscall.Munmap(m.bytes) }
