// Package cli holds what the commands of chaos share: flags, exit codes and small helpers.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Exit codes of the program.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// An ExitError is an error with its own exit code.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error that ends the program with ExitUsage.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Interrupted returns the error of a run that a signal ended early.
func Interrupted() error { return &ExitError{Code: ExitInterrupted, Err: errors.New("interrupted")} }

// A Count is a flag for a whole number within limits.
type Count struct {
	P        *int
	Min, Max int
}

func (c Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < c.Min || n > c.Max {
		return fmt.Errorf("want a whole number from %d to %d", c.Min, c.Max)
	}
	*c.P = n
	return nil
}

func (c Count) String() string {
	if c.P == nil {
		return ""
	}
	return strconv.Itoa(*c.P)
}
func (Count) Type() string { return "number" }

// A Duration is a flag for a time span that is not negative.
type Duration struct {
	P       *time.Duration
	NotZero bool
}

func (v Duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	want := "0 or more"
	if v.NotZero {
		want = "more than 0"
	}
	if err != nil || d < 0 || v.NotZero && d == 0 {
		return fmt.Errorf("want a duration such as 1.5s or 2m, %s", want)
	}
	*v.P = d
	return nil
}

func (v Duration) String() string {
	if v.P == nil || *v.P == 0 {
		return "0"
	}
	return v.P.String()
}
func (Duration) Type() string { return "duration" }

// Pause waits for d or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Signal signals a process. It reports no error if the process has already ended.
func Signal(pid int, sig syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer p.Release()
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Executable returns the path of this program. It stays valid if the file is replaced.
func Executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// OneLine returns text on one line, without control characters, cut to width characters.
func OneLine(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	return text
}
