package task

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/testsync"
)

// N processes each take all processors of the host.
func TestWorkersShareTheProcessors_Row69(t *testing.T) {
	for _, c := range []struct{ processors, workers, share, most int }{
		{1, 1, 1, 2}, {2, 8, 1, 2}, {4, 1, 4, 4}, {8, 3, 3, 6}, {8, 8, 1, 2}, {16, 4, 4, 8}, {64, 3, 22, 43}, {64, 512, 1, 2},
	} {
		got := processors(c.processors, c.workers)
		assert.Equal(t, []int{c.share, c.most}, []int{got.Share, got.Most}, "%d processors for %d workers", c.processors, c.workers)
	}
}

// A directory of another user is refused, but root may use any.
func TestTempDirOfAnotherUserIsRefused_Found15(t *testing.T) {
	for _, c := range []struct {
		name       string
		owner, uid int
		rule       string
	}{
		{"ours", 1000, 1000, ""},
		{"root's", 0, 1000, ""},
		{"ours, who are root", 0, 0, ""},
		{"another user's, for root", 1001, 0, ""},
		{"another user's", 1001, 1000, "it belongs to user 1001, but must belong to user 1000, which is ours, or to root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.rule, safeDir(ownedDir{uid: uint32(c.owner)}, c.uid))
		})
	}
}

// ownedDir describes a directory of a user that only this user may write in.
type ownedDir struct {
	os.FileInfo
	uid uint32
}

func (d ownedDir) Mode() os.FileMode { return os.ModeDir | 0o755 }
func (d ownedDir) Sys() any          { return &syscall.Stat_t{Uid: d.uid} }

// hold is a task that reports its process to a test and runs until the test lets it go.
var hold = Define("test.hold", func(_ context.Context, addr string) (string, error) {
	c, err := net.Dial("unix", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprintf(c, "0 0 %d\n", os.Getpid())
	return bufio.NewReader(c).ReadString('\n')
})

// Counters of what is running drift away from what runs. The worker compares
// them with its records and reports a difference; the end of the worker heals it.
func TestDriftIsReported_Row10(t *testing.T) {
	events := make(chan Event, 1024)
	wait := func(match func(Event) bool) Event {
		t.Helper()
		limit := time.After(testsync.WaitLimit)
		for {
			select {
			case e := <-events:
				if match(e) {
					return e
				}
			case <-limit:
				require.FailNow(t, "the event did not come")
			}
		}
	}
	var log testsync.Buffer
	dir, err := os.MkdirTemp("/tmp", "drift")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	pool, err := New(Config{WorkerNum: 1, ServerName: "drift", TempDir: dir, OnEvent: func(e Event) { events <- e },
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, pool.Start(t.Context()))
	defer func() { assert.NoError(t, pool.Shutdown(context.Background())) }()
	m := testsync.NewRendezvous(t)
	_, err = hold.Async(t.Context(), pool, m.Addr)
	require.NoError(t, err)
	g := m.Next()

	row, ok := pool.pool.Table().Current(0)
	require.True(t, ok)
	require.True(t, pool.pool.Table().WorkerRow(row.Number()).Admit()) // a slot that is never given back
	drift := wait(func(e Event) bool { return e.Kind == "drift" })
	assert.EqualValues(t, "drift", drift.Reason)
	assert.Equal(t, g.PID, drift.Worker.PID)
	assert.Contains(t, drift.Text, "1 tasks in flight, 2 counted as running")
	assert.Contains(t, log.String(), "worker pool: drift")
	g.Release("")

	require.NoError(t, syscall.Kill(g.PID, syscall.SIGKILL))
	wait(func(e Event) bool { return e.Kind == "exited" && e.Worker.PID == g.PID })
	wait(func(e Event) bool { return e.Kind == "ready" })
	assert.Zero(t, pool.Status()[0].Running)
}
