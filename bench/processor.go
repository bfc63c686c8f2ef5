package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// processorTime is what this process and its children use while f runs; not
// measured where the kernel does not tell. Only those that f keeps busy matter:
// processes of other contenders sleep.
func processorTime(f func()) (seconds float64) {
	before, err := childrenTime()
	if err != nil {
		f()
		return notMeasured
	}
	own := ownTime()
	f()
	own = ownTime() - own
	after, err := childrenTime()
	if err != nil {
		return notMeasured
	}
	return (own + after - before).Seconds()
}

func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage of the process itself: " + err.Error()) // it has no way to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// childrenTime asks the scheduler, whose count is finer than that of the
// processes' own times.
func childrenTime() (time.Duration, error) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, errors.New("the kernel does not tell a process's children"))
	}
	var sum time.Duration
	for _, file := range files {
		pids, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		for _, pid := range strings.Fields(string(pids)) {
			d, err := threadsTime(pid)
			if err != nil {
				return 0, err
			}
			sum += d
		}
	}
	return sum, nil
}

func threadsTime(pid string) (time.Duration, error) {
	files, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has just ended
		}
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// idleLimit is in milliseconds of processor time a second: what the runtimes
// of three idle processes do by themselves is below it, a timer that polls is not.
const idleLimit = 3.0

// watchIdle returns the milliseconds of processor time that a pool, workers
// and parent, takes in a second without calls, after one with.
func watchIdle() (float64, error) {
	pool, err := openPool(nil)
	if err != nil {
		return notMeasured, err
	}
	payload := make([]byte, 64)
	if _, _, err := turn(pool, benchCase{kindSync, len(payload), 8}, payload, 100*time.Millisecond); err != nil {
		return notMeasured, errors.Join(err, pool.close())
	}
	time.Sleep(500 * time.Millisecond) // what the calls have left behind is over by then
	used := processorTime(func() { time.Sleep(time.Second) })
	return used * 1000, pool.close()
}
