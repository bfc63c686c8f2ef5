package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taskd-go/task"
)

// A progress shows how many files are done and how many tasks each worker runs: as a bar on a
// terminal, elsewhere as a line at each tenth. Its methods are safe for concurrent use, except
// reached.
type progress struct {
	out    io.Writer
	total  int
	width  int // of the terminal; 0: there is none
	status func() []task.WorkerStatus

	mu    sync.Mutex
	done  int
	drawn time.Time
	mark  int
	at    chan struct{}
}

func newProgress(out io.Writer, total int, status func() []task.WorkerStatus) *progress {
	return &progress{out: out, total: total, width: terminalWidth(out), status: status, mark: -1}
}

// terminalWidth returns the width of the terminal behind w, 0 where there is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return 80
	default:
		return int(size.Col)
	}
}

// reached returns a channel that closes when n files are done. It is called once, before the first
// add.
func (p *progress) reached(n int) <-chan struct{} {
	p.mark, p.at = n, make(chan struct{})
	if n == 0 {
		close(p.at)
	}
	return p.at
}

// redraw is the time between two pictures of the bar.
const redraw = 50 * time.Millisecond

// add counts one more file as done.
func (p *progress) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.done == p.mark {
		close(p.at)
	}
	switch tenth := max(p.total/10, 1); {
	case p.width > 0 && time.Since(p.drawn) >= redraw:
		p.drawn = time.Now()
		fmt.Fprint(p.out, clearLine, bar(p.done, p.total, p.width, p.running()+"  "+name))
	case p.width == 0 && (p.done%tenth == 0 || p.done == p.total):
		fmt.Fprintf(p.out, "  %d of %d%s\n", p.done, p.total, p.running())
	}
}

// running says how many tasks each worker runs.
func (p *progress) running() string {
	var s strings.Builder
	for _, row := range p.status() {
		if s.Len() == 0 {
			s.WriteString(", tasks in the workers:")
		}
		fmt.Fprintf(&s, " %d", row.Running)
	}
	return s.String()
}

const clearLine = "\r\x1b[K"

// end removes the bar.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprint(p.out, clearLine)
	}
}

// say prints a line, above the bar where there is one.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		fmt.Fprint(p.out, clearLine)
		p.drawn = time.Time{}
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// bar draws one picture that fits into a line of width columns.
func bar(done, total, width int, text string) string {
	const cells = 30
	full := cells * done / max(total, 1)
	line := fmt.Sprintf("[%s%s] %d/%d%s", strings.Repeat("#", full), strings.Repeat(".", cells-full), done, total, text)
	if runes := []rune(line); len(runes) >= width {
		line = string(runes[:width-1])
	}
	return line
}
