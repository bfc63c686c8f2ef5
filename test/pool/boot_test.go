package pool_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A worker that is still in OnWorkerStart ends when its parent is gone.
func TestWorkersThatBootGoWithTheirParent(t *testing.T) {
	parallel(t)
	h := newHost(t, hostConfig{Number: 2, Drain: time.Hour, OnStart: "hang"})
	var pids []int
	eventually(t, func() bool {
		pids = titled(h.cmd.Process.Pid, "h.TaskWorker.")
		return len(pids) == 2
	}, func() string { return fmt.Sprint("workers: ", pids) })
	require.NoError(t, h.cmd.Process.Kill())
	ended(t, pids...)
}

// titled returns the children of a process that have a worker's title, which they take when they boot.
func titled(parent int, title string) (pids []int) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, e.Name()))
		for _, child := range strings.Fields(string(children)) {
			comm, _ := os.ReadFile("/proc/" + child + "/comm")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(comm), title) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
