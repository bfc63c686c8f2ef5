package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

// idleLimit is in milliseconds of CPU a second: what the runtimes of three
// processes do by themselves is below it, a polling timer is not.
const idleLimit = 1.0

// watchIdle returns the milliseconds of CPU that a pool, workers and parent,
// takes in a second without calls, after one with; not measured where the kernel does not tell.
func watchIdle() (float64, error) {
	pool, stop, err := startPool()
	if err != nil {
		return notMeasured, err
	}
	defer stop()
	payload := make([]byte, 64)
	if _, _, err := turn(poolSession(pool, stop), benchCase{kindSync, len(payload), 8}, payload, 100*time.Millisecond); err != nil {
		return notMeasured, err
	}
	time.Sleep(500 * time.Millisecond) // what the calls have left behind is over by then
	used, err := processorTime(pool.Status(), func() { time.Sleep(time.Second) })
	if err != nil {
		return notMeasured, nil
	}
	return used.Seconds() * 1000, nil
}

// processorTime is what the workers and this process use while f runs.
func processorTime(workers []task.WorkerStatus, f func()) (time.Duration, error) {
	before, err := workerTime(workers)
	if err != nil {
		return 0, err
	}
	own, err := ownTime()
	if err != nil {
		return 0, err
	}
	f()
	ownAfter, err := ownTime()
	if err != nil {
		return 0, err
	}
	after, err := workerTime(workers)
	return after - before + ownAfter - own, err
}

func ownTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// workerTime asks the scheduler, whose count is finer than that of the processes' own times.
func workerTime(workers []task.WorkerStatus) (time.Duration, error) {
	var sum time.Duration
	for _, w := range workers {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", w.PID))
		if err != nil {
			return 0, err
		}
		if len(threads) == 0 {
			return 0, fmt.Errorf("the kernel does not tell the threads' times of process %d", w.PID)
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				return 0, err
			}
			var ns int64
			if _, err := fmt.Sscan(string(text), &ns); err != nil {
				return 0, fmt.Errorf("%s: %w", file, err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum, nil
}
