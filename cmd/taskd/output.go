package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// terminal returns the width of the terminal behind w, 0 when there is none.
func terminal(w io.Writer) (width int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// A progress shows how many of total are done: as a bar on a terminal, elsewhere as a plain line
// at each tenth. Methods are safe for concurrent use.
type progress struct {
	out   io.Writer
	total int
	width int

	mu    sync.Mutex
	done  int
	drawn time.Time
}

func newProgress(out io.Writer, total int) *progress {
	return &progress{out: out, total: total, width: terminal(out)}
}

// redraw is the time between two pictures of the bar.
const redraw = 50 * time.Millisecond

// add says that one more is done.
func (p *progress) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	switch tenth := max(p.total/10, 1); {
	case p.width > 0 && time.Since(p.drawn) >= redraw:
		p.drawn = time.Now()
		fmt.Fprint(p.out, "\r\x1b[K", bar(p.done, p.total, p.width, name))
	case p.width == 0 && (p.done%tenth == 0 || p.done == p.total):
		fmt.Fprintf(p.out, "%d of %d\n", p.done, p.total)
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// bar draws one picture that fits into a line of width columns.
func bar(done, total, width int, name string) string {
	const cells = 30
	full := cells * done / max(total, 1)
	line := fmt.Sprintf("[%s%s] %d/%d %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), done, total, name)
	if runes := []rune(line); len(runes) >= width {
		line = string(runes[:width-1])
	}
	return line
}

// lasting runs fn, whose end nobody can tell. On a terminal it shows meanwhile for how long it has run.
func lasting(out io.Writer, what string, fn func() (int64, error)) (int64, error) {
	if terminal(out) == 0 {
		return fn()
	}
	return ticking(out, what, time.Second, fn)
}

func ticking(out io.Writer, what string, every time.Duration, fn func() (int64, error)) (int64, error) {
	begin := time.Now()
	stop := periodically(every, func() bool {
		fmt.Fprintf(out, "\r\x1b[K%s: %s so far", what, time.Since(begin).Round(every))
		return true
	})
	defer func() {
		stop()
		fmt.Fprint(out, "\r\x1b[K")
	}()
	return fn()
}
