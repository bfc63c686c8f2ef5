package term

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A lines writer sends what is written to it.
type lines chan string

func (w lines) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestBarFitsItsLine(t *testing.T) {
	assert.Equal(t, "[###############...............] 5/10", bar(5, 10, 80))
	assert.Equal(t, "[#########…", bar(10, 10, 12))
	assert.NotPanics(t, func() { bar(0, 0, 1) })
}

func TestProgressPrintsLinesWithoutATerminal(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, 25)
	p.To(7)
	p.To(25)
	p.End()
	assert.Equal(t, 13, strings.Count(out.String(), " of 25\n"))
}

func TestElapsedShowsTheTimeOnATerminal(t *testing.T) {
	shown := make(lines, 100)
	failed := errors.New("failed")
	n, err := elapsed(shown, "removing jobs", time.Millisecond, func() (int64, error) {
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

func TestElapsedIsSilentWithoutATerminal(t *testing.T) {
	var out strings.Builder
	n, err := Elapsed(&out, "removing jobs", func() (int64, error) { return 7, nil })
	assert.EqualValues(t, 7, n)
	assert.NoError(t, err)
	assert.Empty(t, out.String())
}

func TestCellRemovesControlCharactersAndCuts(t *testing.T) {
	assert.Equal(t, "a b [31mred", Cell("a\nb \x1b[31mred", 20))
	assert.Equal(t, "abcd…", Cell("abcdefgh", 5))
}
