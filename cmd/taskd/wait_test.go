package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventually polls for what only polling can see.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 5*time.Millisecond, what)
}

// readPID reads a pid from a named pipe; it waits for the writer.
func readPID(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return atoi(t, string(text))
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	require.NoError(t, err)
	return n
}

// assertGone waits until a process has ended; a zombie that nobody has reaped yet counts as ended.
func assertGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "process "+strconv.Itoa(pid)+" is gone", func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}
