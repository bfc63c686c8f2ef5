package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// clearLimit is how long the processes of a folder may take to end after SIGKILL.
const clearLimit = 10 * time.Second

// clearDir kills all processes that work in dir, waits for their end, and removes dir. A process may
// start another before it dies, so clearDir looks again until none is left.
func clearDir(dir string) error {
	for end := time.Now().Add(clearLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		pids := Processes(dir)
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = cli.Signal(pid, syscall.SIGKILL) // one that cannot be killed is found again
		}
	}
	return removeLockLast(dir)
}

// removeLockLast removes dir. While any file of it is left, the lock is: a later sweep finds what
// could not be removed.
func removeLockLast(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == lock })
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// inside reports whether path is dir or lies in it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}
