package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A writes sends on what it is given.
type writes chan string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestBarFitsItsLine(t *testing.T) {
	assert.Equal(t, "[###############...............] 5/10 name", bar(5, 10, 80, "name"))
	assert.Len(t, bar(10, 10, 40, strings.Repeat("n", 100)), 39)
	assert.NotPanics(t, func() { bar(0, 0, 1, "") })
}

func TestProgressDrawsPlainLinesElsewhere(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 25)
	for range 25 {
		p.add("name")
	}
	p.end()
	assert.Equal(t, 13, strings.Count(out.String(), " of 25\n"))
}

func TestWhatTakesLongShowsItOnATerminal(t *testing.T) {
	shown := make(writes, 100)
	failed := errors.New("failed")
	n, err := ticking(shown, "removing jobs", time.Millisecond, func() (int64, error) {
		assert.Regexp(t, `removing jobs: \d+ms so far$`, <-shown)
		assert.Regexp(t, `removing jobs: \d+ms so far$`, <-shown)
		return 7, failed
	})
	assert.EqualValues(t, 7, n)
	assert.ErrorIs(t, err, failed)
	close(shown)
	last := ""
	for last = range shown {
	}
	assert.Equal(t, "\r\x1b[K", last, "the line is gone in the end")
}

func TestWhatTakesLongIsSilentWithoutATerminal(t *testing.T) {
	var out strings.Builder
	n, err := lasting(&out, "removing jobs", func() (int64, error) { return 7, nil })
	assert.EqualValues(t, 7, n)
	assert.NoError(t, err)
	assert.Empty(t, out.String())
}
