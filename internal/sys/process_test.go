package sys

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// family starts a child that shares its output, then waits, as the child does.
func family([]string) int {
	child := &exec.Cmd{Path: "/proc/self/exe", Env: helperEnv("sleep"), Stdout: os.Stdout}
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	return sleep(nil)
}

func titled([]string) int {
	SetTitle("Pool.TaskWorker.3")
	comm, _ := os.ReadFile("/proc/self/comm")
	fmt.Printf("%s|%s|%d\n", os.Args[0], strings.TrimSpace(string(comm)), len(os.Environ()))
	return 0
}

func readFile(fd uintptr) int {
	_, err := io.Copy(os.Stdout, os.NewFile(fd, "inherited"))
	if err != nil {
		return 1
	}
	return 0
}

// adopt prints which of its descriptors are open before and after, and which ones its child gets.
func adopt([]string) int {
	AdoptFiles(1)
	for fd := 3; fd <= 5; fd++ {
		flags, err := fcntlGetFD(fd)
		fmt.Print(fd, ":", flags, ":", err == nil, " ")
	}
	fmt.Println()
	return 0
}

func fcntlGetFD(fd int) (int, error) {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(flags), nil
}

func TestHowAProcessEnds(t *testing.T) {
	tests := map[string]struct {
		helper string
		signal os.Signal
		want   ExitState
	}{
		"by itself":   {"exit", nil, ExitState{Code: 7}},
		"by a signal": {"sleep", syscall.SIGKILL, ExitState{Signal: 9}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := startHelper(t, test.helper, nil)
			if test.signal != nil {
				require.NoError(t, p.Signal(test.signal))
			}
			within(t, "the end", async(p.Exited))
			state, ok := p.Reap()
			assert.True(t, ok)
			assert.Equal(t, test.want, state)
			again, ok := p.Reap()
			assert.True(t, ok)
			assert.Equal(t, state, again)
			within(t, "a second wait", async(p.Exited))
		})
	}
}

// A reused pid and an unrelated process is killed: signals only through the held process handle; a
// reaped pid is never signalled again.
func TestNoSignalAfterTheReap_Row39(t *testing.T) {
	p := startHelper(t, "exit", nil)
	within(t, "the exit", async(p.Exited))
	assert.NoError(t, p.Signal(syscall.Signal(0)), "ended, but not reaped: the handle still means it")
	_, ok := p.Reap()
	require.True(t, ok)
	assert.ErrorIs(t, p.Signal(syscall.SIGKILL), os.ErrProcessDone)

	// A signal must not reach another process with the same pid.
	other := startHelper(t, "sleep", nil)
	stale := &Process{proc: other.proc, exit: other.exit, reaped: true}
	stale.KillGroup()
	assert.ErrorIs(t, stale.Signal(syscall.SIGKILL), os.ErrProcessDone)
	endsBy(t, other, syscall.SIGTERM)
}

func TestReapEndsGrandchildren(t *testing.T) {
	p, line, out := startTold(t, "family")
	require.Equal(t, "ready", line)
	require.NoError(t, p.Signal(syscall.SIGKILL))
	state, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, 9, state.Signal)
	// The pipe ends with its last writer, the grandchild.
	within(t, "the grandchild's end", async(func() { _, _ = io.Copy(io.Discard, out) }))
}

func TestKillGroupEndsAll(t *testing.T) {
	p, _, out := startTold(t, "family")
	p.KillGroup()
	within(t, "the group's end", async(func() { _, _ = io.Copy(io.Discard, out) }))
	state, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, 9, state.Signal)
}

func TestAChildLeadsAGroupOfItsOwn(t *testing.T) {
	p := startHelper(t, "sleep", nil)
	group, err := syscall.Getpgid(p.PID())
	require.NoError(t, err)
	assert.Equal(t, p.PID(), group)
}

func TestSomeoneElseReaped(t *testing.T) {
	t.Run("a host that waits for everything", func(t *testing.T) {
		p := startHelper(t, "exit", nil)
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.PID(), &ws, 0, nil)
		require.NoError(t, err)
		within(t, "the wait", async(p.Exited))
		_, ok := p.Reap()
		assert.False(t, ok)
	})
	t.Run("a host that ignores SIGCHLD", func(t *testing.T) {
		signal.Ignore(syscall.SIGCHLD)
		defer func() { // Reset alone would leave it ignored
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGCHLD)
			signal.Stop(c)
		}()
		p := startHelper(t, "exit", nil)
		within(t, "the wait", async(p.Exited))
		_, ok := p.Reap()
		assert.False(t, ok)
	})
}

func TestNoThreadWaitsForAProcess(t *testing.T) {
	const processes = 20
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(entries)
	}
	before := threads()
	var all []*Process
	var done []<-chan struct{}
	for range processes {
		p := startHelper(t, "sleep", nil)
		all = append(all, p)
		done = append(done, async(p.Exited))
	}
	runtime.Gosched()
	assert.Less(t, threads()-before, processes/2)
	for i, p := range all {
		select {
		case <-done[i]:
			t.Error("Exited returned before the end")
		default:
		}
		p.KillGroup()
		within(t, "the end", done[i])
	}
}

// Death signals fire when a thread ends: no child may die with the thread that started it.
func TestAChildOutlivesTheThreadThatStartedIt_Row43(t *testing.T) {
	var p *Process
	within(t, "the start", async(func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		p = startHelper(t, "sleep", nil)
	}))
	for range 50 {
		within(t, "a thread", async(func() { runtime.LockOSThread() }))
	}
	endsBy(t, p, syscall.SIGTERM)
}

// endsBy ends p with sig and checks that no other signal was before it.
func endsBy(t *testing.T, p *Process, sig syscall.Signal) {
	t.Helper()
	assert.NoError(t, p.Signal(sig))
	state, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, ExitState{Signal: int(sig)}, state)
}

func TestADeletedExecutableStillStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content, 0o700))
	exe, err := os.Open(path)
	require.NoError(t, err)
	defer exe.Close()
	require.NoError(t, os.Remove(path))
	p, err := Start(Spawn{Exe: exe, Argv: []string{"gone"}, Env: helperEnv("exit")})
	require.NoError(t, err)
	state, ok := p.Reap()
	assert.True(t, ok)
	assert.Equal(t, 7, state.Code)
}

func TestFilesArriveInOrderWhateverTheirNumbers(t *testing.T) {
	dir := t.TempDir()
	var files []*os.File
	for i := range 12 {
		path := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf("file %d\n", i)), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		files = append([]*os.File{f}, files...)
	}
	// The newest file, with the highest number, becomes 3, which a lower one occupies.
	_, line, _ := startTold(t, "read", files...)
	assert.Equal(t, "file 11", line)
}

func TestTitleAndEnvironment(t *testing.T) {
	_, line, _ := startTold(t, "titled")
	assert.Equal(t, fmt.Sprintf("helper titled|Pool.TaskWorker|%d", len(helperEnv("titled"))), line)
}

func TestStartFails(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	_, err = Start(Spawn{Exe: null, Argv: []string{"nothing"}})
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "start nothing")
	_, err = Start(Spawn{Exe: null})
	assert.ErrorContains(t, err, "Argv must not be empty")
}

func TestAdoptFilesKeepsOursOnly(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	_, line, _ := startTold(t, "adopt", null, null, null)
	assert.Contains(t, line, "3:1:true ", "ours, and now close-on-exec")
	for _, fd := range []string{"4", "5"} {
		assert.NotContains(t, line, fd+":0:true", "inherited and not ours")
	}
}

// A listener that is passed to a child stays non-blocking. Otherwise a deadline would not end an
// accept, in any process that shares the listener.
func TestStartLeavesListenersNonBlocking(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer l.Close()
	f, err := l.File()
	require.NoError(t, err)
	defer f.Close()
	p := startHelper(t, "sleep", nil, f)
	defer p.KillGroup()
	require.NoError(t, l.SetDeadline(time.Now()))
	within(t, "the accept", async(func() {
		_, err := l.Accept()
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}))
}
