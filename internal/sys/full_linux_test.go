package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// If the descriptors run out, at whatever step, no socket file is left.
func TestListenWithoutDescriptorsLeavesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	defer func() { assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	failed := 0
	for limit := uint64(3); ; limit++ {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}))
		l, err := Listen(path)
		if err == nil {
			l.Close()
			break
		}
		failed++
		require.NoFileExists(t, path, fmt.Sprint(limit, " descriptors: ", err))
	}
	assert.NotZero(t, failed)
}

func TestLockOnAFullDiskLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	defer func() { assert.NoError(t, unix.Unmount(dir, 0)) }()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big"), make([]byte, 4096), 0o600))
	path := filepath.Join(dir, "lock")
	_, _, err := Lock(path)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.NoFileExists(t, path)
}
