package worker

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Another user's process is refused, even where the file's mode would let it in.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	r := start(t, nil)
	require.NoError(t, os.Chmod(filepath.Dir(r.path), 0o755))
	require.NoError(t, os.Chmod(r.path, 0o666))

	// The kernel takes the credentials of the thread that connects.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become(t, 65534)
	nobody := r.connect()
	become(t, 0)

	_, err := nobody.read()
	require.ErrorIs(t, err, io.EOF, "not even a greeting")
	r.dial().works()
}

// become changes the effective user of this thread alone.
func become(t *testing.T, uid uintptr) {
	t.Helper()
	const keep = ^uintptr(0)
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uid, keep)
	require.Zero(t, errno)
}
