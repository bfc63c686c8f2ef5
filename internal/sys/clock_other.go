//go:build !linux

package sys

import "golang.org/x/sys/unix"

// Go's clock is mach_absolute_time, as this clock is, and CLOCK_MONOTONIC is not.
const clockID = unix.CLOCK_UPTIME_RAW
