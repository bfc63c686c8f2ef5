// Package term shows results and progress on a terminal or in a pipe: tables, JSON, progress bars
// and questions.
package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/taskd-go/task/cmd/taskd/internal/periodic"
)

// A Progress shows how many of a total are done: as a bar on a terminal, elsewhere as a line at
// each tenth.
type Progress struct {
	out   io.Writer
	total int
	width int

	done  int
	drawn time.Time
}

// NewProgress returns a Progress of total steps on out.
func NewProgress(out io.Writer, total int) *Progress {
	return &Progress{out: out, total: total, width: Width(out)}
}

// redraw is the shortest time between two drawings of the bar.
const redraw = 50 * time.Millisecond

// To reports that done steps are done.
func (p *Progress) To(done int) {
	for p.done < done {
		p.step()
	}
}

func (p *Progress) step() {
	p.done++
	switch tenth := max(p.total/10, 1); {
	case p.width > 0 && time.Since(p.drawn) >= redraw:
		p.drawn = time.Now()
		fmt.Fprint(p.out, clearLine, bar(p.done, p.total, p.width))
	case p.width == 0 && (p.done%tenth == 0 || p.done == p.total):
		fmt.Fprintf(p.out, "%d of %d\n", p.done, p.total)
	}
}

// End removes the bar.
func (p *Progress) End() {
	if p.width > 0 {
		fmt.Fprint(p.out, clearLine)
	}
}

// clearLine makes what follows replace the line of a terminal.
const clearLine = "\r\x1b[K"

// bar draws a bar that fits into a line of width columns.
func bar(done, total, width int) string {
	const cells = 30
	full := cells * done / max(total, 1)
	line := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", cells-full), done, total)
	return cut(line, width-1)
}

// Elapsed returns what fn returns. fn cannot report its progress: on a terminal Elapsed shows
// meanwhile for how long it has run.
func Elapsed(out io.Writer, what string, fn func() (int64, error)) (int64, error) {
	if Width(out) == 0 {
		return fn()
	}
	return elapsed(out, what, time.Second, fn)
}

func elapsed(out io.Writer, what string, every time.Duration, fn func() (int64, error)) (int64, error) {
	begin := time.Now()
	stop := periodic.Call(every, func() bool {
		fmt.Fprintf(out, "%s%s: %s so far", clearLine, what, time.Since(begin).Round(every))
		return true
	})
	defer func() {
		stop()
		fmt.Fprint(out, clearLine)
	}()
	return fn()
}

// Watch calls show at once and then in each interval, until show fails or done closes. On a terminal
// each output replaces the one before.
func Watch(out io.Writer, every time.Duration, done <-chan struct{}, show func(io.Writer) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if Width(out) > 0 {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if err := show(out); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-done:
			return nil
		}
	}
}

// A Line shows a text that changes: over one line on a terminal, twice a second; elsewhere as a
// line every ten seconds.
type Line struct {
	out        io.Writer
	begin, end string
	stop       func()
	text       func() string
}

// ShowLine shows text while it changes, until Stop.
func ShowLine(out io.Writer, text func() string) *Line {
	every := 10 * time.Second
	l := &Line{out: out, end: "\n", text: text}
	if Width(out) > 0 {
		every, l.begin, l.end = 500*time.Millisecond, clearLine, ""
	}
	last := text()
	l.stop = periodic.Call(every, func() bool {
		if now := text(); now != last {
			last = now
			fmt.Fprint(l.out, l.begin, now, l.end)
		}
		return true
	})
	return l
}

// Stop shows the text for the last time.
func (l *Line) Stop() {
	l.stop()
	fmt.Fprint(l.out, l.begin, l.text(), "\n")
}
