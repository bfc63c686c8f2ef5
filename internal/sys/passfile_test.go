package sys

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFilesPassOverASocket(t *testing.T) {
	a, b := connPair(t)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, SendFile(a, []byte("hello"), f))
	buf := make([]byte, 64)
	n, got, err := RecvFile(b, buf)
	require.NoError(t, err)
	defer got.Close()
	assert.Equal(t, "hello", string(buf[:n]))
	content := make([]byte, 7)
	_, err = got.ReadAt(content, 0)
	require.NoError(t, err)
	assert.Equal(t, "content", string(content))
	require.NoError(t, WithFD(got, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		assert.Equal(t, unix.FD_CLOEXEC, flags)
		return err
	}))

	assert.ErrorContains(t, SendFile(a, nil, f), "must not be empty")
	_, err = a.Write([]byte("bare"))
	require.NoError(t, err)
	_, _, err = RecvFile(b, buf)
	assert.ErrorContains(t, err, "4 bytes came without one")

	open := countFiles(t)
	require.NoError(t, WithFD(f, func(fd int) error {
		_, _, err := a.WriteMsgUnix([]byte("three"), unix.UnixRights(fd, fd, fd), nil)
		return err
	}))
	_, got, err = RecvFile(b, buf)
	require.NoError(t, err)
	require.NoError(t, got.Close())
	assert.Equal(t, open, countFiles(t), "those beyond the first are closed")

	require.NoError(t, a.Close())
	_, _, err = RecvFile(b, buf)
	assert.Equal(t, io.EOF, err)
}

func countFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fdDir())
	require.NoError(t, err)
	return len(entries)
}
