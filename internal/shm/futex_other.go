//go:build !linux

package shm

import (
	"sync/atomic"
	"time"
)

const futexStep = time.Millisecond

// FutexWait sleeps while *addr == val, for at most d (d <= 0: no limit). The system has no public
// futex, so FutexWait polls every millisecond.
func FutexWait(addr *uint32, val uint32, d time.Duration) {
	for slept := time.Duration(0); atomic.LoadUint32(addr) == val && (d <= 0 || slept < d); slept += futexStep {
		time.Sleep(futexStep)
	}
}

// FutexWake does nothing, since FutexWait polls.
func FutexWake(*uint32) {}
