// Package testsize says which tests run and how large they are. Only tests import it.
package testsize

import (
	"os"
	"testing"
)

// variable says what runs besides the short tests: with 1 those that kill database servers and those of
// medium sizes, a few minutes more; with huge also those of a million rows, half an hour more.
const variable = "TASKD_TEST_FULL"

// NeedsFull skips the test unless TASKD_TEST_FULL is set. what completes "this test …".
func NeedsFull(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("not run without %s=1: this test %s", variable, what)
	}
}

// Of returns the size of a test: short; with TASKD_TEST_FULL=1 three times as much, at most huge; with
// TASKD_TEST_FULL=huge it is huge.
func Of(huge, short int) int {
	switch os.Getenv(variable) {
	case "":
		return short
	case "huge":
		return huge
	}
	return min(huge, 3*short)
}
