package main

import (
	"errors"
	"os"
	"time"
)

// pulseVariable tells the worker processes of queue work --pool where its pulse is: a file that it touches while it
// lives. One that is stopped, by Ctrl-Z for instance, renews no leases, and what its pool runs must not outlive them.
const pulseVariable = "TASKD_QUEUE_PULSE"

// beatPulse touches the file at path, for processes that are started from now on, until stop.
func beatPulse(path string, every time.Duration) (stop func(), err error) {
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Setenv(pulseVariable, path)); err != nil {
		return nil, err
	}
	return periodically(every, func() bool {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // an unheard beat is told where it is missed
		return true
	}), nil
}

// hearPulse reports, whenever it is asked, whether the file at path was touched within patience. Without a path nobody
// needs to.
func hearPulse(path string, patience time.Duration) (alive func() bool) {
	if path == "" {
		return func() bool { return true }
	}
	heard, last := time.Now(), time.Time{} // when, on the monotonic clock, and what the file said
	return func() bool {
		if info, err := os.Stat(path); err == nil && !info.ModTime().Equal(last) {
			heard, last = time.Now(), info.ModTime()
		}
		return time.Since(heard) < patience
	}
}
