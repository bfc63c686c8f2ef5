package shm

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const limit = time.Minute

// sleeperEnv makes the test binary a process that sleeps on the memory in descriptor 3.
const sleeperEnv = "SHM_TEST_SLEEPER"

func TestMain(m *testing.M) {
	if os.Getenv(sleeperEnv) != "" {
		os.Exit(futex())
	}
	os.Exit(m.Run())
}

func TestMemoryIsSealed(t *testing.T) {
	f, err := Create("test", 8192)
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
func futex() int {
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
	f, err := Create("test", 4096)
	require.NoError(t, err)
	defer f.Close()
	ro, err := ReadOnly(f)
	require.NoError(t, err)
	defer ro.Close()
	b, err := Map(f, 4096, true)
	require.NoError(t, err)
	word := (*uint32)(unsafe.Pointer(&b[0]))

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sleeperEnv+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{ro}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	out := bufio.NewReader(stdout)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	asleep := func() bool {
		wchan, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", cmd.Process.Pid))
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
	f, err := Create("test", 4096)
	require.NoError(t, err)
	defer f.Close()
	b, err := Map(f, 4096, false)
	require.NoError(t, err)
	word := (*uint32)(unsafe.Pointer(&b[0]))
	within(t, "a wait with a limit", async(func() { FutexWait(word, 0, 10*time.Millisecond) }))
	within(t, "a wait for what has changed", async(func() { FutexWait(word, 1, 0) }))
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		require.FailNow(t, what+" took too long")
	}
}

func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
