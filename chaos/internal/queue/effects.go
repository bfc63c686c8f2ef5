package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
)

// An effect is what a run of a job leaves behind, outside of the database.
type effect struct {
	At      int64         // unix nanoseconds
	What    effectKind    //
	Job     string        // id of the envelope
	Attempt int           //
	Owner   string        // the worker's name in this run
	PID     int           // of the process that ran it
	Failed  bool          // at its end: as it was told to
	Alone   bool          // at its beginning: no other process ran it
	History []pastAttempt // at its beginning: what it knew of attempts before
}

type effectKind string

const (
	effectBegan     effectKind = "began"
	effectEnded     effectKind = "ended"
	effectUnsettled effectKind = "unsettled" // its worker had lost the lease, or did not learn what was stored
)

// A pastAttempt is a failed attempt in a job's own memory.
type pastAttempt struct {
	Attempt int
	Reason  job.Reason
}

func past(list []job.AttemptError) (attempts []pastAttempt) {
	for _, a := range list {
		attempts = append(attempts, pastAttempt{a.Attempt, a.Reason})
	}
	return attempts
}

// effects is the file of one process. Each effect is one write, so that a kill leaves whole lines.
type effects struct {
	dir  string
	once sync.Once
	file *os.File
	err  error
}

const effectsSuffix = ".effects"

func (f *effects) write(e effect) error {
	f.once.Do(func() {
		path := filepath.Join(f.dir, fmt.Sprintf("%d-%d%s", os.Getpid(), time.Now().UnixNano(), effectsSuffix))
		f.file, f.err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	})
	if f.err != nil {
		return f.err
	}
	e.At, e.PID = time.Now().UnixNano(), os.Getpid()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

// readEffects are those of all processes.
func readEffects(dir string) (all []effect, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+effectsSuffix))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			var e effect
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// alone takes the lock of a job, which ends with the process. Not ok: another process runs that job.
func alone(dir, jobID string) (release func(), ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, jobID+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return func() { f.Close() }, err == nil, nil
}
