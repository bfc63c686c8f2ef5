package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/taskd-go/task"
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
// at each tenth. Methods are safe for concurrent use, but for reached.
type progress struct {
	out   io.Writer
	total int
	width int

	mu    sync.Mutex
	done  int
	drawn time.Time
	mark  int
	at    chan struct{}
}

func newProgress(out io.Writer, total int) *progress {
	return &progress{out: out, total: total, width: terminal(out), mark: -1}
}

// reached returns a channel that closes when n are done. Once, before the first add.
func (p *progress) reached(n int) <-chan struct{} {
	p.mark, p.at = n, make(chan struct{})
	if n == 0 {
		close(p.at)
	}
	return p.at
}

// redraw is the time between two pictures of the bar.
const redraw = 50 * time.Millisecond

// add says that one more is done.
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

// above prints a line above the bar.
func (p *progress) above(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = time.Time{}
	}
	fmt.Fprintln(p.out, line)
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

// printShares prints what each worker did, the totals of its index.
func printShares(out io.Writer, rows []task.WorkerStatus) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "worker\tpid\taccepted\tsuccess\tfail\tlost\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t\n", r.Index, r.PID, r.Accepted, r.Success, r.Fail, r.Lost)
	}
	w.Flush()
}

// bytesText shows a size as people read it.
func bytesText(n int64) string {
	for _, u := range units {
		if uint64(n) >= u.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
