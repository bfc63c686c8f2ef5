package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
)

// An effect is a line that a run of a job writes to a file outside the database.
type effect struct {
	At      int64 // unix nanoseconds
	What    effectKind
	Job     string // id of the envelope
	Attempt int
	Owner   string        // the worker's name in this workload
	PID     int           // of the process that wrote it
	Failed  bool          // at the end: the run failed, as ordered
	Alone   bool          // at the beginning: no other process ran the job
	History []pastAttempt // at the beginning: the attempts that the job remembers
	Note    string        // of an event
}

type effectKind string

const (
	effectBegan     effectKind = "began"
	effectEnded     effectKind = "ended"
	effectEvent     effectKind = "event"     // of the worker, for people who read the timeline
	effectUnsettled effectKind = "unsettled" // the worker lost the lease, or does not know whether the end is stored
)

// A pastAttempt is a failed attempt that a job remembers.
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

// effects is the file of one process. Each effect is one write, so a kill leaves whole lines.
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

// readEffects returns the effects of all processes.
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

// began reports whether any run of a job has begun.
func began(dir string) bool {
	all, err := readEffects(dir)
	return err == nil && slices.ContainsFunc(all, func(e effect) bool { return e.What == effectBegan })
}

// lockJob takes the lock of a job, which ends with the process. alone is false if another process
// holds it: that one runs the job.
func lockJob(dir, jobID string) (release func(), alone bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, jobID+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return func() { f.Close() }, err == nil, nil
}
