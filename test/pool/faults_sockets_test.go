package pool_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// A cleaner removes the socket file of a live server; the process runs, no
// caller can connect, and nothing starts it again.
func TestRemovedSocketsAreBoundAgain_Row17(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 2})
	m := testsync.NewRendezvous(t)
	answer := make(chan string, 1)
	go func() {
		s, _ := task.As[string](p.Sync(t.Context(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit)))
		answer <- s
	}()
	g := m.Next()
	path := filepath.Join(p.dir, fmt.Sprintf("p.TaskWorker.%d.sock", g.Worker))
	begun := time.Now()
	require.NoError(t, os.Remove(path))
	for lost := true; lost; {
		_, err := p.Sync(t.Context(), Echo{1})
		require.NoError(t, err, "calls go on elsewhere")
		_, err = os.Stat(path)
		lost = err != nil
	}
	assert.Less(t, time.Since(begun), soon)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	p.event(func(e task.Event) bool { return e.Kind == "socket_lost" && e.Worker.Index == g.Worker })
	g.Release("the task went on")
	assert.Equal(t, "the task went on", <-answer)
	p.status(func(rows []task.WorkerStatus) bool { return len(rows) == 2 && rows[0].Accepting && rows[1].Accepting })
	eventually(t, func() bool {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, func() string { return path + " takes no connection" })
	assert.Zero(t, p.still().Lost)
}

// A burst overflows the default backlog of 100, and then descriptors run out.
func TestBurstNeedsNoMoreThanItsSlots_Row20(t *testing.T) {
	p := startPool(t, task.Config{WorkerNum: 2, MaxRunningNum: 1000})
	workerFDs := func() int {
		n := 0
		for _, r := range p.Status() {
			entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.PID))
			n += len(entries)
		}
		return n
	}
	ours, theirs := countFDs(), workerFDs()
	for range 2 {
		var wg sync.WaitGroup
		for range 2000 {
			wg.Go(func() {
				_, err := p.Sync(t.Context(), Slow{For: 50 * time.Millisecond}, task.WithTimeout(waitLimit))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
	}
	// What stays open is a bounded number of connections for later calls.
	const kept = 2 * (64 + 1)
	eventually(t, func() bool { return countFDs() <= ours+kept && workerFDs() <= theirs+kept }, func() string {
		return fmt.Sprintf("%d descriptors here, %d before; %d in the workers, %d before", countFDs(), ours, workerFDs(), theirs)
	})
	assert.EqualValues(t, 4000, p.still().Success)
	require.NoError(t, p.Shutdown(t.Context()))
	eventually(t, func() bool { return countFDs() <= ours }, func() string { return fmt.Sprintf("%d descriptors, %d before", countFDs(), ours) })
}

// A chmod after the bind leaves a window; a umask is the whole process's and breaks others.
func TestSocketsArePrivateFromTheFirst_Row21(t *testing.T) {
	for _, mask := range []int{0o000, 0o077} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			old := syscall.Umask(mask)
			defer syscall.Umask(old)
			dir := shortDir(t)
			var stop atomic.Bool
			var seen atomic.Int64
			var wg sync.WaitGroup
			wg.Go(func() { // whatever is in the folder at any time is private
				for !stop.Load() {
					found, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
					for _, path := range found {
						if info, err := os.Lstat(path); err == nil {
							seen.Add(1)
							assert.Equal(t, os.ModeSocket|0o600, info.Mode(), path)
						}
					}
				}
			})
			made := shortDir(t)
			wg.Go(func() { // what others make meanwhile has the mode that they asked for
				for !stop.Load() {
					path, err := os.MkdirTemp(made, "")
					if assert.NoError(t, err) && assert.NoError(t, os.Chmod(path, 0o700)) {
						other := filepath.Join(path, "d")
						assert.NoError(t, os.Mkdir(other, 0o755))
						info, err := os.Stat(other)
						if assert.NoError(t, err) {
							assert.EqualValues(t, 0o755&^mask, info.Mode().Perm())
						}
					}
				}
			})
			p := startPool(t, task.Config{WorkerNum: 8, TempDir: dir})
			eventually(t, func() bool { return seen.Load() > 100 }, func() string { return "no socket was seen" })
			stop.Store(true)
			wg.Wait()
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// A listen that fails in a shared or unwritable folder is found late: the tasks
// silently never run. Here New fails, or Start, before any worker runs.
func TestBadFoldersAreFoundBeforeAnyWorker_Row22(t *testing.T) {
	parallel(t)
	file := filepath.Join(shortDir(t), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct{ dir, cause string }{
		"it is missing":        {"/tmp/there/is/none", "no such file"},
		"it is a file":         {file, "must be a directory"},
		"it is not writable":   {"/proc/self", "must be writable"},
		"its path has a NUL":   {"/tmp/\x00", "NUL"},
		"its path is too long": {filepath.Join(append([]string{"/tmp"}, makeNames(20)...)...), "100"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := task.New(task.Config{TempDir: c.dir})
			var bad *task.ConfigError
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, "TempDir", bad.Field)
			assert.Contains(t, err.Error(), c.cause)
		})
	}
	t.Run("it is read-only", func(t *testing.T) {
		dir := mounted(t, "tmpfs", "-o", "ro")
		_, err := task.New(task.Config{TempDir: dir})
		assert.ErrorContains(t, err, "read-only")
	})
	for name, c := range map[string]struct {
		kind    []string
		problem error
	}{
		"it takes one file and no socket": {[]string{"tmpfs", "-o", "nr_inodes=2"}, syscall.ENOSPC},
		"it takes no ordinary file":       {[]string{"mqueue"}, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, task.Config{TempDir: mounted(t, c.kind[0], c.kind[1:]...)})
			err := p.Start(t.Context())
			require.ErrorIs(t, err, c.problem)
			assert.Contains(t, err.Error(), p.dir)
			assert.Empty(t, p.Events(), "no worker ran")
			assert.Empty(t, p.children())
		})
	}
}

func makeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "folder"
	}
	return names
}

// mounted mounts a file system of the given kind for the test.
func mounted(t *testing.T, kind string, options ...string) string {
	t.Helper()
	dir := shortDir(t)
	if out, err := exec.Command("mount", append([]string{"-t", kind, "taskd-test", dir}, options...)...).CombinedOutput(); err != nil {
		t.Skipf("the kernel or this user's rights allow no mount of %s: %v: %s", kind, err, out)
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	return dir
}

// One bad hello ends the accept loop.
func TestBadHellosEndNothing_Row78(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, FrameTimeout: 50 * time.Millisecond})
	path := filepath.Join(p.dir, "p.TaskWorker.0.sock")
	for i := range 1000 {
		c, err := net.Dial("unix", path)
		require.NoError(t, err)
		switch i % 4 {
		case 0: // it says nothing and goes
		case 1: // it says nothing and stays
			defer c.Close()
			continue
		case 2:
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		case 3:
			_, _ = c.Write([]byte{0, 0, 1}) // a header cut short
		}
		c.Close()
	}
	_, err := p.Sync(t.Context(), Echo{1}, task.WithTimeout(soon))
	require.NoError(t, err)
	assert.Len(t, p.Events(), 2, "started and ready, nothing else")
}
