package client

import (
	"io"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// Another user has put a listener in the place of a worker's socket, and greets as the worker would.
func TestSocketOfAnotherUserGetsNothing_Found15(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const other = 65534
	p := newPool(t, 2, 8)
	require.NoError(t, os.Chmod(p.dir, 0o777))
	got := make(chan []byte, 64)
	p.run(&fake{
		index: 0, generation: 1, listener: listenAs(t, other, p.path(0)), row: p.row(0, 1),
		greet: func(c *fakeConn) error {
			_ = c.write(protocol.AppendGreeting(nil, c.greeting()))
			b, err := io.ReadAll(c.conn)
			got <- b
			return err
		},
	})
	_, f := p.client.Do(t.Context(), syncCall("a secret"))
	require.NotNil(t, f)
	assert.Equal(t, NotRun, f.Delivery)
	assert.ErrorContains(t, f, "belongs to user 65534, we are user 0")
	assert.Empty(t, <-got)

	p.worker(1, echo)
	for range 8 {
		reply, f := p.client.Do(t.Context(), syncCall("a secret"))
		require.Nil(t, f, "%v", f)
		assert.Equal(t, 1, reply.Index)
	}
	for range len(got) {
		assert.Empty(t, <-got)
	}
}

// listenAs listens at path as a process of the given user does.
func listenAs(t *testing.T, uid uintptr, path string) *net.UnixListener {
	t.Helper()
	// The kernel takes the credentials of the thread that calls listen.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become(t, uid)
	l, err := sys.Listen(path)
	become(t, 0)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// become changes the effective user of this thread alone.
func become(t *testing.T, uid uintptr) {
	t.Helper()
	const keep = ^uintptr(0)
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uid, keep)
	require.Zero(t, errno)
}
