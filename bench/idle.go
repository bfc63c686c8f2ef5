package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// idleLimit is in milliseconds of CPU a second: what the kernel itself does
// for a few processes is below it, a polling timer is not.
const idleLimit = 1.0

// watchIdle returns the milliseconds of CPU that this process and its children
// took in one second in which nothing happened; not measured where the kernel
// does not tell.
func watchIdle() float64 {
	time.Sleep(200 * time.Millisecond) // the start is over by then
	before, err := familyTime()
	if err != nil {
		return notMeasured
	}
	time.Sleep(time.Second)
	after, err := familyTime()
	if err != nil {
		return notMeasured
	}
	return (after - before).Seconds() * 1000
}

func familyTime() (time.Duration, error) {
	pids := []string{"self"}
	children, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0, err
	}
	for _, file := range children {
		list, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		pids = append(pids, strings.Fields(string(list))...)
	}
	var sum time.Duration
	for _, pid := range pids {
		threads, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
		if err != nil {
			return 0, err
		}
		for _, file := range threads {
			d, err := threadTime(file)
			if err != nil {
				return 0, err
			}
			sum += d
		}
	}
	return sum, nil
}

func threadTime(schedstat string) (time.Duration, error) {
	text, err := os.ReadFile(schedstat)
	if err != nil {
		return 0, err
	}
	var ns int64
	if _, err := fmt.Sscan(string(text), &ns); err != nil {
		return 0, fmt.Errorf("%s: %w", schedstat, err)
	}
	return time.Duration(ns), nil
}
