package pool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task"
)

// A worker is killed for want of memory: the parent hangs, or the reason is lost.
func TestWantOfMemoryIsNamed_Row75(t *testing.T) {
	t.Run("a limit of the process", func(t *testing.T) {
		p := startPool(t, task.Config{WorkerNum: 1})
		pid := p.Status()[0].PID
		if raceEnabled {
			t.Skip("the race detector needs terabytes of addresses")
		}
		limit := uint64(addresses(t, pid) + 800<<20) // room for threads, not for what the task wants
		require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}, nil))
		_, err := p.Sync(t.Context(), Hoard{Bytes: 1 << 30}, task.WithTimeout(waitLimit))
		e := callError(t, err)
		assert.Equal(t, task.MayHaveRun, e.Delivery)
		assert.Contains(t, e.Message, "out of memory")
		exit := p.exited(pid)
		assert.EqualValues(t, "out_of_memory", exit.Reason)
		assert.Contains(t, exit.Stderr, "memory", "the runtime's own words")
		_, err = p.Sync(t.Context(), Echo{1}, task.WithWait(waitLimit), task.WithTimeout(waitLimit))
		assert.NoError(t, err)
	})
	t.Run("a limit of the control group", func(t *testing.T) {
		const limit = 256 << 20
		group := memoryGroup(t, limit)
		dir := shortDir(t)
		h := newHost(t, hostConfig{Dir: dir, Number: 2}, "sh", "-c", "echo $$ > "+group+"/cgroup.procs && exec \"$0\"")
		require.Equal(t, "ready", h.line())
		c, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h"})
		require.NoError(t, err)
		defer c.Close()
		s, err := task.As[Self](c.Sync(t.Context(), Who{}))
		require.NoError(t, err)
		assert.EqualValues(t, limit/10*9/3, s.MaxHeap, "a worker's share of the limit")
		_, err = c.Sync(t.Context(), Hoard{Bytes: 1 << 30}, task.WithTimeout(waitLimit))
		e := callError(t, err)
		assert.Equal(t, task.MayHaveRun, e.Delivery)
		assert.Contains(t, e.Message, "out of memory (signal 9")
		h.say("echo")
		assert.Equal(t, "<nil>", h.line(), "the parent lives, and its pool works")
		eventually(t, func() bool { return strings.Contains(h.err.String(), "reason=out_of_memory") }, h.err.String)
	})
}

// memoryGroup makes a control group with a limit of memory, in bytes.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	parent, file := "/sys/fs/cgroup", "memory.max"
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case parts[1] == "memory":
			parent, file = filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.limit_in_bytes"
		case parts[0] == "0" && file == "memory.max":
			parent = filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	group := filepath.Join(parent, fmt.Sprintf("taskd-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Skipf("this user's rights allow no control group: %v", err)
	}
	t.Cleanup(func() {
		eventually(t, func() bool { return os.Remove(group) == nil }, func() string { return "the control group stays" })
	})
	if err := os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0o600); err != nil {
		t.Skipf("the control group takes no limit of memory: %v", err)
	}
	return group
}
