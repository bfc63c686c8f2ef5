package sys

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connPair returns the two ends of a connection through a listener.
func connPair(t *testing.T) (client, server *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	client, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	server, err = l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	return client, server
}

// chmod after bind leaves a window, and umask is process-wide. Under umask 000 and 077 the mode is
// 0600 in the very first stat; parallel os.MkdirTemp is unaffected.
func TestModeIsPrivateInTheFirstStat_Row21(t *testing.T) {
	for _, umask := range []int{0o000, 0o077} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			dir := t.TempDir()
			path := filepath.Join(dir, "s")
			first := make(chan os.FileMode, 1)
			go func() {
				for began := time.Now(); time.Since(began) < limit; {
					if st, err := os.Lstat(path); err == nil {
						first <- st.Mode()
						return
					}
				}
				close(first)
			}()
			var others sync.WaitGroup
			others.Go(func() {
				for range 50 {
					d, err := os.MkdirTemp(dir, "d")
					if !assert.NoError(t, err) {
						return
					}
					st, err := os.Stat(d)
					assert.NoError(t, err)
					assert.Equal(t, os.FileMode(0o700)|os.ModeDir, st.Mode())
				}
			})
			l, err := Listen(path)
			require.NoError(t, err)
			defer l.Close()
			assert.Equal(t, os.FileMode(0o600)|os.ModeSocket, <-first)
			others.Wait()
		})
	}
}

// Close unlinks, also twice, also for inherited descriptors: close the old listener after the new
// bind, and the new path stays.
func TestClosingAListenerLeavesTheFile_Row12(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := Listen(path)
	require.NoError(t, err)
	_, err = Listen(path)
	assert.ErrorIs(t, err, syscall.EADDRINUSE)
	before, err := IDOf(path)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, path+".old")) // keeps the inode number in use
	next, err := Listen(path)
	require.NoError(t, err)
	defer next.Close()
	require.NoError(t, old.Close())
	require.Error(t, old.Close())
	after, err := IDOf(path)
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
}

func TestIDOfNothing(t *testing.T) {
	_, err := IDOf(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A long TMPDIR gives "invalid argument" or a crash: it works, or the error names path, length and
// limit.
func TestLongPaths_Row18(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "l")
	require.NoError(t, err)
	defer os.RemoveAll(base)
	for length := 95; length <= 120; length++ {
		path := filepath.Join(base, strings.Repeat("x", length-len(base)-1))
		l, err := Listen(path)
		if err == nil {
			assert.LessOrEqual(t, length, 107)
			require.NoError(t, l.Close())
			continue
		}
		assert.Greater(t, length, 107)
		assert.EqualError(t, err, fmt.Sprintf("listen on %s: the path has %d bytes, the system allows 107", path, length))
	}
}

// connect connects to the socket that its argument names, and prints its peer.
func connect(args []string) int {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: args[0]})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cred, err := Peer(c)
	fmt.Println(os.Getpid(), cred.PID, cred.UID, err)
	return 0
}

func TestPeerNamesBothEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	var pid, met, uid int
	var rest string
	_, err = fmt.Sscan(output(t, helperCommand(t, "connect", path)), &pid, &met, &uid, &rest)
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), met)
	assert.Equal(t, os.Getuid(), uid)
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	defer c.Close()
	cred, err := Peer(c)
	require.NoError(t, err)
	assert.Equal(t, Cred{PID: pid, UID: os.Getuid()}, cred)
	require.NoError(t, Relisten(l))
}

// A backlog of 100 overflows: many may connect before anyone accepts.
func TestManyMayWaitInTheBacklog_Row20(t *testing.T) {
	if backlog() < 2000 {
		t.Skipf("the system allows %d", backlog())
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, Relisten(l))
	for i := range 2000 {
		c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
		if errors.Is(err, syscall.EMFILE) {
			t.Skipf("only %d descriptors", i)
		}
		require.NoError(t, err, "connection %d", i)
		defer c.Close()
	}
}

func TestReadBarrier(t *testing.T) {
	client, server := connPair(t)
	_, err := client.Write([]byte("before"))
	require.NoError(t, err)
	require.NoError(t, CloseRead(server))
	if BarrierRead {
		_, err = client.Write([]byte("after"))
		assert.ErrorIs(t, err, syscall.EPIPE)
		buf := make([]byte, 64)
		n, err := server.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "before", string(buf[:n]))
	}
}

// lock takes the lock of its argument and holds it.
func lock(args []string) int {
	_, holder, err := Lock(os.Getenv("LOCK_PATH"))
	fmt.Println(holder, err)
	time.Sleep(time.Hour)
	return 0
}

func TestALockIsOneProcesss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	t.Setenv("LOCK_PATH", path)
	p, line, _ := startTold(t, "lock")
	require.Equal(t, "0 <nil>", line)
	_, holder, err := Lock(path)
	assert.ErrorIs(t, err, ErrLocked)
	assert.Equal(t, p.PID(), holder)

	// The end of the holder releases the lock. Nothing needs to be cleaned up.
	p.KillGroup()
	p.Reap()
	f, _, err := Lock(path)
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%d\n", os.Getpid()), string(content))
	require.NoError(t, f.Close())
	f, _, err = Lock(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
