package measure

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

// ProcessorTime returns the processor time of this process and its children while f runs, or
// NotMeasured if the kernel does not report it. Processes of other contenders sleep meanwhile.
func ProcessorTime(f func()) (seconds float64) {
	before, err := childrenTime()
	if err != nil {
		f()
		return NotMeasured
	}
	own := ownTime()
	f()
	own = ownTime() - own
	after, err := childrenTime()
	if err != nil {
		return NotMeasured
	}
	return (own + after - before).Seconds()
}

func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage of the process itself: " + err.Error()) // cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// childrenTime reads the scheduler's statistics, which are finer than the times of the processes.
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
