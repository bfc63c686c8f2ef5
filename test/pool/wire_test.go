package pool_test

import (
	"encoding/binary"
	"io"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/protocol"
)

// readResponse reads one frame without the library's reader.
func readResponse(t *testing.T, c net.Conn) protocol.Response {
	t.Helper()
	var head [4]byte
	_, err := io.ReadFull(c, head[:])
	require.NoError(t, err)
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err = io.ReadFull(c, body)
	require.NoError(t, err)
	r, err := protocol.ParseResponse(body)
	require.NoError(t, err)
	return r
}

// useThreads starts and ends 200 threads, one after a fork each.
func useThreads() {
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			_ = unix.Gettid()
			_ = exec.Command("/bin/true").Run()
		})
	}
	wg.Wait()
}
