package sys

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNowIsTheKernelsClock(t *testing.T) {
	var before, now, after int64
	width := int64(1 << 62)
	for range 100 { // the tightest of them: the others were interrupted
		b := readClock()
		n := Now()
		a := readClock()
		if a-b < width {
			width, before, now, after = a-b, b, n, a
		}
	}
	const off = int64(5 * time.Microsecond)
	assert.Greater(t, now, before-off)
	assert.Less(t, now, after+off)
}

func TestTheClockIsOneForAllProcesses_Row52(t *testing.T) {
	before := Now()
	text := output(t, helperCommand(t, "clock"))
	after := Now()
	there, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, there, before)
	assert.Less(t, there, after)
}

func TestMemoryIsSealed(t *testing.T) {
	f, err := Memory("test", 8192)
	require.NoError(t, err)
	defer f.Close()
	assert.Error(t, f.Truncate(0))
	assert.Error(t, f.Truncate(1<<20))
	_, err = Map(f, 8193, true)
	assert.ErrorContains(t, err, "holds 8192 bytes, 8193 are needed")

	ro, err := ReadOnly(f)
	require.NoError(t, err)
	defer ro.Close()
	_, err = Map(ro, 8192, true)
	assert.ErrorIs(t, err, os.ErrPermission)
	w, err := Map(f, 8192, true)
	require.NoError(t, err)
	r, err := Map(ro, 8192, false)
	require.NoError(t, err)
	w[5000] = 42
	assert.Equal(t, byte(42), r[5000])
	assert.NoError(t, Unmap(w))
	assert.NoError(t, Unmap(r))
}

func TestMapRefusesAFileThatCanShrink(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(8192))
	_, err = Map(f, 4096, false)
	assert.ErrorContains(t, err, "not sealed")
}

// futex sleeps on a read-only mapping until the word has changed.
func futex([]string) int {
	b, err := Map(os.NewFile(3, "memory"), 4096, false)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	word := (*uint32)(unsafe.Pointer(&b[0]))
	fmt.Println("ready")
	for atomic.LoadUint32(word) == 0 {
		FutexWait(word, 0, 0)
	}
	fmt.Println("woken")
	return 0
}

func TestFutexWakesASleeperWithAReadOnlyMapping(t *testing.T) {
	f, err := Memory("test", 4096)
	require.NoError(t, err)
	defer f.Close()
	ro, err := ReadOnly(f)
	require.NoError(t, err)
	defer ro.Close()
	b, err := Map(f, 4096, true)
	require.NoError(t, err)
	word := (*uint32)(unsafe.Pointer(&b[0]))

	p, line, out := startTold(t, "futex", ro)
	require.Equal(t, "ready", line)
	asleep := func() bool {
		wchan, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", p.PID()))
		return err != nil || strings.Contains(string(wchan), "futex")
	}
	for began := time.Now(); !asleep() && time.Since(began) < limit; {
		time.Sleep(time.Millisecond)
	}
	atomic.StoreUint32(word, 1)
	FutexWake(word)
	within(t, "the wake-up", async(func() { line, err = out.ReadString('\n') }))
	assert.NoError(t, err)
	assert.Equal(t, "woken\n", line)
}

func TestFutexWaitEnds(t *testing.T) {
	f, err := Memory("test", 4096)
	require.NoError(t, err)
	defer f.Close()
	b, err := Map(f, 4096, false)
	require.NoError(t, err)
	word := (*uint32)(unsafe.Pointer(&b[0]))
	within(t, "a wait with a limit", async(func() { FutexWait(word, 0, 10*time.Millisecond) }))
	within(t, "a wait for what has changed", async(func() { FutexWait(word, 1, 0) }))
}

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
	require.NoError(t, control(got, func(fd int) error {
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
	require.NoError(t, control(f, func(fd int) error {
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
	entries, err := os.ReadDir(fdDir)
	require.NoError(t, err)
	return len(entries)
}
