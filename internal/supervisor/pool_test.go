package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// waitLimit is how long a test waits for what has no limit of its own.
const waitLimit = time.Minute

// A testPool is a pool of fake workers whose events are kept.
type testPool struct {
	*Supervisor
	t   *testing.T
	cfg Config

	mu     sync.Mutex
	events []tasktype.Event
	more   chan struct{}
}

func testConfig(t *testing.T) Config {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { null.Close() })
	return Config{
		Settings: control.Settings{
			WorkerNum:      2,
			MaxRunningNum:  8,
			MaxPackageSize: 2 << 20,
			DrainTimeout:   5 * time.Second,
		},
		ServerName:   "T",
		TempDir:      t.TempDir(),
		MaxReplacing: 1,
		StartTimeout: waitLimit,
		Tasks:        []string{"a", "b"},
		Stdout:       null,
		Stderr:       null,
	}
}

func testEnv() env {
	e := systemEnv()
	e.newExe = func() (*os.File, error) { return os.Open("/proc/self/exe") }
	e.refuse = func(l *net.UnixListener, _, _ int, _ time.Duration) {
		_ = l.SetDeadline(time.Unix(1, 0))
	}
	return e
}

// startPool starts a pool and checks at the test's end that nothing of it is left.
func startPool(t *testing.T, change ...func(*Config)) *testPool {
	t.Helper()
	p, err := tryPool(t, testEnv(), change...)
	require.NoError(t, err)
	return p
}

func tryPool(t *testing.T, e env, change ...func(*Config)) (*testPool, error) {
	t.Helper()
	cfg := testConfig(t)
	for _, f := range change {
		f(&cfg)
	}
	checkLeaks(t, cfg.TempDir)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	p := &testPool{t: t, cfg: cfg, more: make(chan struct{}, 1)}
	p.cfg.OnEvent = func(e tasktype.Event) {
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if cfg.OnEvent != nil {
			cfg.OnEvent(e)
		}
	}
	s, err := start(t.Context(), p.cfg, e)
	if err != nil {
		return p, err
	}
	p.Supervisor = s
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return p, nil
}

// checkLeaks compares goroutines, descriptors, files and children before and after the test.
func checkLeaks(t *testing.T, dir string) {
	goroutines := runtime.NumGoroutine()
	files := len(strings.Split(openFiles(), "|"))
	t.Cleanup(func() {
		eventually(t, "goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
		eventually(t, "descriptors as before", func() bool { return len(strings.Split(openFiles(), "|")) <= files })
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(
			t,
			slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "T.") }),
			"files are left",
		)
		assert.Empty(t, children(), "processes are left")
	})
}

// children lists the child processes of this one.
func children() []string {
	var all []string
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		list, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		all = append(all, strings.Fields(string(list))...)
	}
	return all
}

// eventually polls: for what no channel tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(waitLimit); !ok(); time.Sleep(2 * time.Millisecond) {
		require.False(t, time.Now().After(limit), "never: "+what)
	}
}

// waitEvent returns the first event that fits, of those that were and those to come.
func (p *testPool) waitEvent(what string, fits func(tasktype.Event) bool) tasktype.Event {
	p.t.Helper()
	limit := time.After(waitLimit)
	for {
		p.mu.Lock()
		i := slices.IndexFunc(p.events, fits)
		var e tasktype.Event
		if i >= 0 {
			e = p.events[i]
		}
		p.mu.Unlock()
		if i >= 0 {
			return e
		}
		select {
		case <-p.more:
		case <-limit:
			p.mu.Lock()
			defer p.mu.Unlock()
			require.Fail(p.t, "no event: "+what, "%+v", p.events)
		}
	}
}

func (p *testPool) waitExit(pid int) tasktype.Event {
	p.t.Helper()
	return p.waitEvent(
		fmt.Sprintf("exit of %d", pid),
		func(e tasktype.Event) bool { return e.Kind == tasktype.EventExited && e.Worker.PID == pid },
	)
}

// waitReady returns the first worker of an index that became ready after the given generation.
func (p *testPool) waitReady(index int, after uint64) tasktype.Event {
	p.t.Helper()
	return p.waitEvent(fmt.Sprintf("worker %d ready after generation %d", index, after), func(e tasktype.Event) bool {
		return e.Kind == tasktype.EventReady && e.Worker.Index == index && e.Generation > after
	})
}

func (p *testPool) count(fits func(tasktype.Event) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.events {
		if fits(e) {
			n++
		}
	}
	return n
}

// waitExits waits until n processes are reported to have ended, which may be later than what their
// ends caused, and fails if there are more.
func (p *testPool) waitExits(n int) {
	p.t.Helper()
	exited := func(e tasktype.Event) bool { return e.Kind == tasktype.EventExited }
	eventually(p.t, fmt.Sprintf("%d processes have ended", n), func() bool { return p.count(exited) >= n })
	assert.Equal(p.t, n, p.count(exited))
}

// ask sends one command to a worker and returns its answer; empty when it died of it.
func (p *testPool) ask(index int, command string) string {
	p.t.Helper()
	c, err := net.DialTimeout("unix", SocketPath(p.cfg.TempDir, p.cfg.ServerName, index), waitLimit)
	require.NoError(p.t, err)
	defer c.Close()
	require.NoError(p.t, c.SetDeadline(time.Now().Add(waitLimit)))
	_, _ = fmt.Fprintln(c, command)
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer)
}

func (p *testPool) pid(index int) int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.ask(index, "who"))
	require.NoError(p.t, err)
	return pid
}

func (p *testPool) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	return p.Shutdown(ctx)
}
