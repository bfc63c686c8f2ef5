package pooljob

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// A ticket is an empty temporary file by which the caller learns that a job does not run any more. The worker locks
// it while the job runs, so its lock ends with the job or with the process, whatever ends that. A caller that gives
// up waits for the lock, and then removes the file: a worker that comes to the job later finds no ticket.
type ticket struct{ file *os.File }

func newTicket() (*ticket, error) {
	f, err := os.CreateTemp("", "taskd-job-*")
	if err != nil {
		return nil, fmt.Errorf("pooljob: ticket: %w", err)
	}
	return &ticket{f}, nil
}

func (t *ticket) path() string { return t.file.Name() }

// close removes the file. Its errors matter to nobody: the worker has removed it, or it is litter in a temporary
// directory.
func (t *ticket) close() {
	os.Remove(t.file.Name())
	t.file.Close()
}

// wait returns when the job has ended and keeps it from beginning.
func (t *ticket) wait() {
	for pause := time.Millisecond; !lock(t.file); pause = min(2*pause, 100*time.Millisecond) {
		time.Sleep(pause)
	}
}

// punch takes the ticket for a job that begins; not ok: the caller has given it up.
func punch(path string) (release func(), ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	if !lock(f) || removed(f) {
		f.Close()
		return nil, false
	}
	return func() {
		os.Remove(path) // in case its caller is no more
		f.Close()
	}, true
}

func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
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
