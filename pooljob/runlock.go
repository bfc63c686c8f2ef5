package pooljob

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

// A runLock is an empty temporary file that tells the caller when a job no longer runs. The worker
// locks it while the job runs, so the lock ends with the job or with the process. A caller that
// gives the job up waits for the lock and removes the file; a worker that gets the job later does
// not find the file and does not run the job.
type runLock struct{ file *os.File }

func newRunLock() (*runLock, error) {
	f, err := os.CreateTemp("", "taskd-job-*")
	if err != nil {
		return nil, fmt.Errorf("pooljob: lock file: %w", err)
	}
	return &runLock{f}, nil
}

func (l *runLock) path() string { return l.file.Name() }

// close removes the file. It ignores errors: the worker has removed the file, or it stays in the
// temporary directory.
func (l *runLock) close() {
	os.Remove(l.file.Name())
	l.file.Close()
}

// wait returns when the job does not run, and keeps it from starting later.
func (l *runLock) wait() {
	for pause := time.Millisecond; sys.TryLock(l.file) != nil; pause = min(2*pause, 100*time.Millisecond) {
		time.Sleep(pause)
	}
}

// lockForRun locks the file at path for a job that starts. If ok is false, the caller has given the
// job up.
func lockForRun(path string) (release func(), ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	if sys.TryLock(f) != nil || removed(f) {
		f.Close()
		return nil, false
	}
	return func() {
		os.Remove(path) // in case the caller has ended
		f.Close()
	}, true
}

// removed reports whether the file lost its name between being opened and being locked.
func removed(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink == 0
}
