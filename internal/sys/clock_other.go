//go:build !linux

package sys

import "golang.org/x/sys/unix"

// Go counts by mach_absolute_time, which this clock shows and CLOCK_MONOTONIC does not.
const clockID = unix.CLOCK_UPTIME_RAW
