//go:build !linux

package sys

import (
	"sync/atomic"
	"time"
)

const futexStep = time.Millisecond

// FutexWait sleeps while *addr == val, at most d (d <= 0: no limit). There is no public futex here,
// so it looks again every millisecond.
func FutexWait(addr *uint32, val uint32, d time.Duration) {
	for slept := time.Duration(0); atomic.LoadUint32(addr) == val && (d <= 0 || slept < d); slept += futexStep {
		time.Sleep(futexStep)
	}
}

// FutexWake has nothing to do: sleepers look again by themselves.
func FutexWake(*uint32) {}
