package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/tasktype"
)

const (
	maxLine     = 64 << 10               // bytes of a line that goes to a logger
	maxChunk    = 32 << 10               // bytes of a piece of unchanged output
	maxWaiting  = 64                     // pieces that wait for an outlet
	outputPause = 100 * time.Millisecond // without progress after which an outlet counts as blocked
	tailBytes   = 4 << 10
	tailLines   = 20
	maxHeadline = 512
	maxCrash    = 256 << 10 // bytes of output of a crash after its first line
)

// outputs copy the workers' output to the parent's output or to its log. These may block without
// end: the workers do not wait for them, and output that does not fit is dropped and counted.
type outputs struct {
	logger         *slog.Logger // nil: the output is copied unchanged
	stdout, stderr *outlet
}

// A stream is the stdout or the stderr of a worker.
type stream struct {
	index, pid int
	name       string
}

func openOutputs(cfg Config, events *eventQueue) *outputs {
	if cfg.Logger != nil {
		o := newOutlet("the log", events, func(p piece) {
			cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, string(p.data),
				slog.Int("worker", p.from.index), slog.Int("pid", p.from.pid), slog.String("stream", p.from.name))
		}, func() {})
		return &outputs{logger: cfg.Logger, stdout: o, stderr: o}
	}
	return &outputs{
		stdout: fileOutlet(cfg.Stdout, os.Stdout, events),
		stderr: fileOutlet(cfg.Stderr, os.Stderr, events),
	}
}

// fileOutlet writes to f through another descriptor, because a write to a broken pipe through
// descriptor 1 or 2 ends a Go program, and the workers' output must not end the host. For a closed
// f it drops the output.
func fileOutlet(f, fallback *os.File, events *eventQueue) *outlet {
	if f == nil {
		f = fallback
	}
	name := f.Name()
	f, err := duplicate(f, name)
	if err != nil {
		return newOutlet(name, events, func(piece) {}, func() {})
	}
	return newOutlet(name, events, func(p piece) { _, _ = f.Write(p.data) }, func() { f.Close() })
}

// copy copies r to its end. last, if not nil, keeps the last lines.
func (o *outputs) copy(r io.Reader, from stream, last *tail) {
	to := o.stdout
	if from.name == "stderr" {
		to = o.stderr
	}
	size := maxChunk
	if o.logger != nil {
		size = maxLine
	}
	in := bufio.NewReaderSize(r, size)
	for {
		data, err := o.next(in)
		if len(data) > 0 {
			if last != nil {
				last.write(data)
			}
			if o.logger != nil {
				data = bytes.TrimRight(data, "\r\n")
			}
			to.put(piece{bytes.Clone(data), from})
		}
		if err != nil {
			return
		}
	}
}

// next returns the bytes that in holds or, for a logger, its next line.
func (o *outputs) next(in *bufio.Reader) ([]byte, error) {
	if o.logger != nil {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		return line, err
	}
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	data, err := in.Peek(in.Buffered())
	if err == nil {
		// The bytes that Peek returned stay valid until the next read.
		_, err = in.Discard(len(data))
	}
	return data, err
}

// close waits for pieces on their way, but not for a blocked outlet.
func (o *outputs) close() {
	o.stdout.close()
	if o.stderr != o.stdout {
		o.stderr.close()
	}
}

type piece struct {
	data []byte
	from stream
}

// An outlet is a destination of output, with a goroutine of its own that may block there.
type outlet struct {
	name    string
	events  *eventQueue
	waiting chan piece
	blocked atomic.Bool
	mu      sync.Mutex
	dropped int // bytes
	ended   chan struct{}
}

func newOutlet(name string, events *eventQueue, write func(piece), end func()) *outlet {
	o := &outlet{name: name, events: events, waiting: make(chan piece, maxWaiting), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer end()
		for p := range o.waiting {
			write(p)
			o.blocked.Store(false)
			o.report()
		}
	}()
	return o
}

// put queues p. It waits for room while the outlet makes progress, and drops p if it does not.
func (o *outlet) put(p piece) {
	select {
	case o.waiting <- p:
		return
	default:
	}
	if !o.blocked.Load() {
		pause := time.NewTimer(outputPause)
		defer pause.Stop()
		select {
		case o.waiting <- p:
			return
		case <-pause.C:
			o.blocked.Store(true)
		}
	}
	o.mu.Lock()
	o.dropped += len(p.data)
	o.mu.Unlock()
}

// report emits an event about the output that was dropped while the outlet was blocked.
func (o *outlet) report() {
	o.mu.Lock()
	n := o.dropped
	o.dropped = 0
	o.mu.Unlock()
	if n > 0 {
		o.events.put(
			tasktype.Event{
				Kind:   tasktype.EventOutputDropped,
				Reason: tasktype.ReasonOutputBlocked,
				Worker: tasktype.Worker{Index: -1},
				Text:   fmt.Sprintf("%d bytes of the workers' output: %s took no more", n, o.name),
			},
		)
	}
}

func (o *outlet) close() {
	close(o.waiting)
	limit := time.NewTimer(outputPause)
	defer limit.Stop()
	select {
	case <-o.ended:
	case <-limit.C:
	}
	o.report()
}

// A tail keeps the last bytes of a stream, and the lines with which a Go program begins to report a
// crash, before its long list of goroutines.
type tail struct {
	mu       sync.Mutex
	data     []byte
	headline []byte // the last lines that begin a crash
	after    int    // bytes since the headline
}

func (t *tail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		t.after += len(line)
		if beginsCrash(line) {
			t.note(bytes.TrimSpace(line))
		}
	}
	t.data = append(t.data, p[max(0, len(p)-tailBytes):]...)
	t.data = t.data[max(0, len(t.data)-tailBytes):]
}

// note keeps a headline. One that follows another within maxCrash belongs to the same crash.
func (t *tail) note(line []byte) {
	if t.after > maxHeadline {
		t.headline = nil
	} else if len(t.headline) > 0 {
		t.headline = append(t.headline, '\n')
	}
	t.headline = append(t.headline, line...)
	t.headline = t.headline[:min(len(t.headline), maxHeadline)]
	t.after = 0
}

// beginsCrash reports whether the Go runtime begins the report of a crash with line.
func beginsCrash(line []byte) bool {
	for _, words := range []string{
		"panic: ", "fatal error: ", "runtime/cgo: ", "SIGABRT: ", "SIGSEGV: ", "SIGBUS: ", "SIGQUIT: ",
	} {
		if bytes.HasPrefix(line, []byte(words)) {
			return true
		}
	}
	return false
}

// String returns the last lines, without the final newline. The headline of a crash comes first,
// unless more than maxCrash bytes followed it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := lastLines(bytes.TrimSpace(t.data))
	if t.headline == nil || t.after > maxCrash || bytes.Contains(lines, t.headline) {
		return string(lines)
	}
	return string(t.headline) + "\n…\n" + string(lines)
}

func lastLines(data []byte) []byte {
	for i, n := len(data), 0; ; n++ {
		if n == tailLines {
			return data[i+1:]
		}
		if i = bytes.LastIndexByte(data[:i], '\n'); i < 0 {
			return data
		}
	}
}
