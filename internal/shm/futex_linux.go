package shm

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // without FUTEX_PRIVATE_FLAG: processes share the word
	futexWake = 1
)

// FutexWait sleeps while *addr == val, for at most d (d <= 0: no limit). It may return early. addr
// lies in shared memory, which may be mapped read-only.
func FutexWait(addr *uint32, val uint32, d time.Duration) {
	var limit *unix.Timespec
	if d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		limit = &ts
	}
	// After any error (another value, a signal, the limit) the caller checks the value again.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), futexWait, uintptr(val),
		uintptr(unsafe.Pointer(limit)), 0, 0)
}

// FutexWake wakes all processes that sleep on addr.
func FutexWake(addr *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), futexWake, math.MaxInt32, 0, 0, 0)
}
