package pool_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestWhatAWorkerIs(t *testing.T) {
	leaked, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer leaked.Close()
	// A descriptor without close-on-exec is what a careless host leaks.
	inherited, err := syscall.Dup(int(leaked.Fd()))
	require.NoError(t, err)
	defer syscall.Close(inherited)

	p := startPool(t, task.Config{WorkerNum: 2, ServerName: "A long server name"})
	s, err := task.As[Self](p.Sync(t.Context(), Who{}))
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("A long server name.TaskWorker.%d", s.Info.WorkerIndex), s.Title)
	assert.Equal(t, s.Title[:15], s.Comm)
	assert.Equal(t, os.Args, s.Args, "the worker's own os.Args are the program's")
	assert.True(t, s.IsWorker)
	assert.Positive(t, s.Info.TaskID)
	for _, e := range s.Env {
		assert.False(t, strings.HasPrefix(e, "TASKD_WORKER"), e)
	}
	devnull := 0
	for _, target := range s.FDs {
		assert.NotEqual(t, "/dev/zero", target, "the leaked descriptor")
		if target == "/dev/null" {
			devnull++
		}
	}
	assert.Positive(t, devnull, "stdin is /dev/null")
}

// Secrets are inherited.
func TestEnvironmentByAllowList_Row77(t *testing.T) {
	t.Setenv("SECRET", "x")
	t.Setenv("WANTED", "y")
	p := startPool(t, task.Config{WorkerNum: 1, Env: []string{"WANTED", "GORACE"}})
	s, err := task.As[Self](p.Sync(t.Context(), Who{}))
	require.NoError(t, err)
	assert.Contains(t, s.Env, "WANTED=y")
	assert.NotContains(t, s.Env, "SECRET=x")
}

// A print to stdout corrupts the frame stream.
func TestPrintsDoNotDisturbCalls_Row72(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	printed := make(chan error, 1)
	go func() {
		_, err := p.Sync(context.Background(), Print{Line: "noise", Bytes: atMost(10 << 20)}, task.WithTimeout(waitLimit))
		printed <- err
	}()
	for i := range 200 {
		n, err := task.As[int](p.Sync(t.Context(), Echo{i}))
		require.NoError(t, err)
		require.Equal(t, i, n)
	}
	require.NoError(t, <-printed)
	p.log.Reset()
	_, err := p.Sync(t.Context(), Print{Line: "tagged", Bytes: 1})
	require.NoError(t, err)
	pid := p.Status()[0].PID
	eventually(t, func() bool {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "tagged") && strings.Contains(line, fmt.Sprint(pid)) && strings.Contains(line, "worker=0") {
				return true
			}
		}
		return false
	}, func() string { return "no line with worker and pid" })
}

// startWithOutput starts a pool without a Logger in a process whose stdout and stderr are w.
func startWithOutput(t *testing.T, w *os.File) *pool {
	t.Helper()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = w, w
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	return startPool(t, task.Config{WorkerNum: 1, Logger: noLogger})
}

// A parent whose own output blocks must not hold up its workers.
func TestBlockedParentOutput(t *testing.T) {
	r, w, err := os.Pipe() // never read
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	p := startWithOutput(t, w)
	_, err = p.Sync(t.Context(), Print{Line: "x", Bytes: 1 << 20}, task.WithTimeout(waitLimit))
	assert.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
}

// Without a Logger the workers' output goes on as it is.
func TestOutputGoesOnByteForByte(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := startWithOutput(t, w)
	got := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		got <- string(b)
	}()
	_, err = p.Sync(t.Context(), Print{Line: "line", Bytes: 1})
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
	w.Close()
	line := "line" + strings.Repeat("x", 95) + "\n"
	assert.Equal(t, line+line, <-got, "one on stdout, one on stderr")
	r.Close()
}

// Buffered output is lost at a crash.
func TestLastWordsOfAKilledWorker_Row74(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Signal{Number: int(syscall.SIGKILL), Print: "these are my last words"})
	require.Error(t, err)
	e := p.event(func(e task.Event) bool { return e.Signal == int(syscall.SIGKILL) })
	assert.Contains(t, e.Stderr, "these are my last words")
}

// One dead worker breaks the whole pool; no pid, no code.
func TestOneDeadWorkerHarmsNoOther_Row32(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 4})
	m := testsync.NewRendezvous(t)
	failed := make(chan error, 4)
	var held []*testsync.Held
	for range 4 { // one after the other: calls that choose at the same moment may choose the same worker
		go func() {
			_, err := p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
			failed <- err
		}()
		held = append(held, m.Next())
	}
	killed := held[0]
	require.NoError(t, syscall.Kill(killed.PID, syscall.SIGKILL))
	start := time.Now()
	e := callError(t, <-failed)
	assert.Less(t, time.Since(start), soon, "the call ends at once, not at its time-out")
	assert.Equal(t, task.ErrSockTimeout, e.Status)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	assert.Equal(t, killed.PID, e.PID)
	assert.Contains(t, e.Error(), fmt.Sprint(killed.PID))
	assert.Contains(t, strings.ToLower(e.Message), "signal")
	event := p.event(func(e task.Event) bool { return e.Worker.PID == killed.PID && e.Signal == int(syscall.SIGKILL) })
	require.Len(t, event.Tasks, 1)
	assert.Equal(t, killed.TaskID, event.Tasks[0].ID)
	assert.Contains(t, event.Tasks[0].Name, "Hold")
	for _, g := range held[1:] {
		g.Release("")
		assert.NoError(t, <-failed)
	}
	p.status(func(rows []task.WorkerStatus) bool { return rows[killed.Worker].Accepting })
	assert.EqualValues(t, 1, p.still().Lost)
}

// A killed task worker leaves the running-tasks counter too high.
func TestCountersHealAfterAKill_Row1(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	for range 8 {
		_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
		require.NoError(t, err)
	}
	var g *testsync.Held
	for range 8 {
		g = m.Next()
	}
	require.NoError(t, syscall.Kill(g.PID, syscall.SIGKILL))
	p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != g.PID })
	sum := p.still()
	assert.Zero(t, sum.Running)
	assert.EqualValues(t, 8, sum.Lost)
	assert.EqualValues(t, 8, sum.Accepted)
}

// A call whose worker dies is reported once and never sent again by us.
func TestLostCallIsNotSentAgain_Row57(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	_, err := p.Sync(t.Context(), Exit{Code: 9}, task.WithWait(waitLimit))
	e := callError(t, err)
	assert.Equal(t, task.ErrSockTimeout, e.Status)
	assert.Equal(t, task.MayHaveRun, e.Delivery)
	event := p.event(func(e task.Event) bool { return e.ExitCode == 9 })
	assert.NotEmpty(t, event.Reason)
	assert.EqualValues(t, 1, p.still().Accepted)
}

// Every way in which a worker can end is followed by a successor.
func TestDeadWorkersAreReplaced(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	for name, r := range map[string]task.Runner{
		"exit 0":  Exit{0},
		"exit 3":  Exit{3},
		"SIGKILL": Signal{Number: int(syscall.SIGKILL)},
		"SIGSEGV": Signal{Number: int(syscall.SIGSEGV)},
		"SIGABRT": Signal{Number: int(syscall.SIGABRT)},
		"SIGQUIT": Signal{Number: int(syscall.SIGQUIT)},
	} {
		pid := p.Status()[0].PID
		_, err := p.Sync(t.Context(), r, task.WithTimeout(waitLimit))
		assert.Error(t, err, name)
		p.status(func(rows []task.WorkerStatus) bool { return rows[0].Accepting && rows[0].PID != pid })
		_, err = p.Sync(t.Context(), Echo{1})
		assert.NoError(t, err, name)
	}
}

// SIGTERM makes a plugin die uncleanly, logged as an error.
func TestTermToOneWorkerDrainsIt_Row45(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	m := testsync.NewRendezvous(t)
	answer := make(chan string, 1)
	go func() {
		s, _ := task.As[string](p.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit)))
		answer <- s
	}()
	g := m.Next()
	require.NoError(t, syscall.Kill(g.PID, syscall.SIGTERM))
	// The successor serves while the old one finishes its task; both are listed.
	p.status(func(rows []task.WorkerStatus) bool {
		fresh, old := false, false
		for _, r := range rows {
			if r.Index == g.Worker {
				fresh = fresh || r.Accepting && r.PID != g.PID
				old = old || !r.Accepting && r.PID == g.PID && r.Running == 1
			}
		}
		return fresh && old
	})
	assert.FileExists(t, filepath.Join(p.dir, fmt.Sprintf("p.TaskWorker.%d.sock", g.Worker)))
	g.Release("finished")
	assert.Equal(t, "finished", <-answer)
	e := p.event(func(e task.Event) bool { return e.Kind == "exited" && e.Worker.PID == g.PID })
	assert.Zero(t, e.ExitCode)
	assert.EqualValues(t, "drained", e.Reason)
	sum := p.still()
	assert.Zero(t, sum.Lost)
}

// Drains under the test of SIGTERM: tasks may finish early.
func TestDrainingTellsTasks(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	answer := make(chan string, 1)
	go func() {
		s, _ := task.As[string](p.Sync(context.Background(), UntilDrain{m.Addr}, task.WithTimeout(waitLimit)))
		answer <- s
	}()
	m.Next()
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, "drained", <-answer)
	assert.Nil(t, task.Draining(t.Context()), "outside a task")
}

func TestShutdownAtTheEndOfItsContext(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	m := testsync.NewRendezvous(t)
	id, err := p.Async(t.Context(), Stuck{m.Addr})
	require.NoError(t, err)
	m.Next()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = p.Shutdown(ctx)
	assert.Less(t, time.Since(start), soon)
	require.Error(t, err)
	assert.Contains(t, err.Error(), fmt.Sprint(id))
	assert.Contains(t, err.Error(), "Stuck")
}

// The real reason of a failed boot is lost; the caller sees "EOF".
func TestStartNamesWhatABootDiedOf_Row31(t *testing.T) {
	parallel(t)
	for what, words := range map[string][]string{
		"panic": {"no luck today"},
		"fail":  {"no database today"},
		"exit":  {"my last words", "7"},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPool(t, task.Config{WorkerNum: 2, ServerName: onStart(t, what)})
			err := p.Start(t.Context())
			require.Error(t, err)
			for _, w := range words {
				assert.Contains(t, err.Error(), w)
			}
			assert.Empty(t, p.children())
		})
	}
}

func TestStartTimeout(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1, ServerName: onStart(t, "hang"), StartTimeout: 200 * time.Millisecond})
	err := p.Start(t.Context())
	require.Error(t, err)
	assert.Contains(t, err.Error(), "200ms")
}

func TestStartEndsWithItsContext(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1, ServerName: onStart(t, "hang"), StartTimeout: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, p.Start(ctx), context.DeadlineExceeded)
}

func TestShutdownEndsAStart(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1, ServerName: onStart(t, "hang"), StartTimeout: time.Hour})
	failed := make(chan error, 1)
	go func() { failed <- p.Start(context.Background()) }()
	p.event(func(e task.Event) bool { return e.Kind == "started" })
	require.NoError(t, p.Shutdown(t.Context()))
	assert.ErrorIs(t, <-failed, task.ErrClosed)
}

// A test binary without the gate in its TestMain re-runs its tests in every
// worker; Start refuses that. This test runs such a binary.
func TestGateIsMissing(t *testing.T) {
	parallel(t)
	dir := shortDir(t)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	work, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	_, require1, _ := strings.Cut(string(work), "\n")
	write("go.mod", "module gate\n"+require1+"\nrequire github.com/taskd-go/task v0.0.0\nreplace github.com/taskd-go/task => "+root+"\n")
	write("go.sum", string(sum))
	write("gate_test.go", `package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/taskd-go/task"
)

func TestStart(t *testing.T) {
	p, err := task.New(task.Config{TempDir: t.TempDir()[:0] + "/tmp", ServerName: "gate"})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Start(context.Background())
	if err == nil || !strings.Contains(err.Error(), "RunIfWorker") {
		t.Fatal(err)
	}
}
`)
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}
