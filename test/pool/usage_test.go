package pool_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A usage is what a process must have no more of after a test than before it.
type usage struct {
	goroutines, fds, children int
}

func currentUsage() usage { return usage{runtime.NumGoroutine(), countFDs(), len(children())} }

func (u usage) atMost(limit usage) bool {
	return u.goroutines <= limit.goroutines && u.fds <= limit.fds && u.children <= limit.children
}

// parallel is t.Parallel for the tests of this package. A test that is not parallel runs alone, and so
// the usage of the whole process is checked at its end. Those of parallel tests are checked together, at
// the end of the binary; with -parallel 1 each by itself.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	shared.Store(true)
}

var shared atomic.Bool // parallel tests run

func alone() bool { return !shared.Load() || flag.Lookup("test.parallel").Value.String() == "1" }

// runTests runs the tests and then checks that nothing of them is left.
func runTests(m *testing.M) int {
	if r, w, err := os.Pipe(); err == nil { // makes the runtime open the descriptors that it polls with
		r.Close()
		w.Close()
	}
	before := currentUsage()
	code := m.Run()
	if code != 0 || backAt(before) {
		return code
	}
	fmt.Printf("left after the tests: %+v, before them: %+v\n%s\n%s\n", currentUsage(), before, strings.Join(children(), "\n"), stacks())
	return 1
}

// backAt waits until the process is back at a usage.
func backAt(before usage) bool {
	for end := time.Now().Add(soon); time.Now().Before(end); pause() {
		if currentUsage().atMost(before) {
			return true
		}
	}
	return false
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// checkGone checks that a pool that was shut down left no worker process, no socket file, and, where
// the test ran alone, no goroutine and no descriptor.
func (p *pool) checkGone(before usage) {
	t := p.t
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end) && (len(p.children()) > 0 || len(p.sockets()) > 0); {
		pause()
	}
	assert.Empty(t, p.children(), "processes are left")
	assert.Empty(t, p.sockets(), "socket files are left")
	if alone() && !backAt(before) {
		now := currentUsage()
		assert.LessOrEqual(t, now.goroutines, before.goroutines, "goroutines are left:\n%s", stacks())
		assert.LessOrEqual(t, now.fds, before.fds, "descriptors are left")
		assert.LessOrEqual(t, now.children, before.children, "processes are left: %v", children())
	}
}

// children lists the processes of the pool that have not been reaped.
func (p *pool) children() (pids []int) {
	for _, e := range p.Events() {
		if e.Kind == "started" && isChild(e.Worker.PID) {
			pids = append(pids, e.Worker.PID)
		}
	}
	return pids
}

// sockets lists the socket files of the pool.
func (p *pool) sockets() []string {
	found, _ := filepath.Glob(filepath.Join(p.dir, "*.sock"))
	return found
}

func countFDs() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// children lists the processes whose parent is this one.
func children() []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); isChild(pid) {
			b, _ := os.ReadFile(path)
			found = append(found, string(b))
		}
	}
	return found
}

// isChild is true for a zombie too.
func isChild(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	return len(f) > 1 && f[1] == strconv.Itoa(os.Getpid())
}
