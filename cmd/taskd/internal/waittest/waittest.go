// Package waittest waits in tests for what other processes do.
package waittest

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

// limit tells a late event from one that never comes. An idle machine needs less than a tenth of
// it.
const limit = 2 * time.Minute

// Eventually polls until holds reports true. It is for what only polling can see.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// PID reads a process id from a named pipe. It waits for the writer.
func PID(t testing.TB, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return Int(t, string(text))
}

// Int returns the whole number that is all of text but for space around it.
func Int(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	require.NoError(t, err)
	return n
}

// Gone waits until a process has ended. A zombie that its parent has yet to reap counts as ended.
func Gone(t testing.TB, pid int) {
	t.Helper()
	Eventually(t, "process "+strconv.Itoa(pid)+" is gone", func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}
