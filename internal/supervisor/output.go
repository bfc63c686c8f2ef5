package supervisor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/taskd-go/task/tasktype"
)

const (
	maxWaiting  = 64              // pieces that wait for an outlet
	outputPause = time.Second     // without progress after which an outlet counts as blocked
	closeLimit  = 5 * time.Second // bounds the wait for slow outlets at the end of the pool
)

// outputs copy the workers' output to the parent's output or to its log. These may block without
// end: the workers do not wait for them then, and output that does not fit is dropped and counted.
type outputs struct {
	logger         *slog.Logger // nil: the output is copied in whole lines
	stdout, stderr *outlet
	forwards       sync.WaitGroup
}

// A stream is the stdout or the stderr of a worker.
type stream struct {
	index, pid int
	name       string
}

func openOutputs(cfg Config, events *eventQueue) *outputs {
	if cfg.Logger != nil {
		o := newOutlet("the log", events, func(p piece) {
			cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, p.text(), p.attrs()...)
		}, func() {})
		return &outputs{logger: cfg.Logger, stdout: o, stderr: o}
	}
	stdout, stderr := cmp.Or(cfg.Stdout, os.Stdout), cmp.Or(cfg.Stderr, os.Stderr)
	first, second := new(sync.Mutex), new(sync.Mutex)
	if sameFile(stdout, stderr) { // it may be a pipe, and a long write to a pipe is not atomic
		second = first
	}
	return &outputs{stdout: fileOutlet(stdout, first, events), stderr: fileOutlet(stderr, second, events)}
}

func sameFile(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

// fileOutlet writes to f while it holds writing. It uses another descriptor, because a write to a
// broken pipe through descriptor 1 or 2 ends a Go program, and the workers' output must not end the
// host. For a closed f it drops the output.
func fileOutlet(f *os.File, writing *sync.Mutex, events *eventQueue) *outlet {
	name := f.Name()
	f, err := duplicate(f, name)
	if err != nil {
		return newOutlet(name, events, func(piece) {}, func() {})
	}
	write := func(p piece) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = f.Write(p.marked())
	}
	return newOutlet(name, events, write, func() { f.Close() })
}

// copy reads r to its end; last, if not nil, keeps the last lines. Another goroutine forwards what
// was read, so that a slow outlet does not delay the end of copy once exited, the end of the worker,
// is closed. Until then a worker waits while maxBacklog bytes of it wait.
func (o *outputs) copy(r io.Reader, from stream, last *tail, exited <-chan struct{}) {
	b := newBacklog()
	o.forwards.Go(func() { o.forward(b, from) })
	defer b.end()
	buf := make([]byte, maxRead)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if last != nil {
				last.write(buf[:n])
			}
			b.add(buf[:n], exited)
		}
		if err != nil {
			return
		}
	}
}

func (o *outputs) forward(r io.Reader, from stream) {
	to := o.stdout
	if from.name == "stderr" {
		to = o.stderr
	}
	s := splitter{many: o.logger == nil}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine+utf8.UTFMax)
	in.Split(s.split)
	for in.Scan() {
		to.put(piece{data: bytes.Clone(in.Bytes()), from: from, part: s.part, cut: s.cut})
	}
}

// close waits for output on its way, but not for a blocked outlet, and at most for closeLimit. It
// drops what is left then.
func (o *outputs) close() {
	outlets := []*outlet{o.stdout, o.stderr}
	if o.stderr == o.stdout {
		outlets = outlets[:1]
	}
	closed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		o.forwards.Wait()
		for _, to := range outlets {
			close(to.waiting)
		}
		close(closed)
		for _, to := range outlets {
			<-to.ended
		}
		close(ended)
	}()
	await(ended, outlets)
	for _, to := range outlets {
		close(to.over)
	}
	<-closed
	for _, to := range outlets {
		to.discard()
	}
}

// await waits for done, at most for closeLimit, and only while outlets write: it gives up when none
// has written anything for outputPause.
func await(done <-chan struct{}, outlets []*outlet) {
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	pause := time.NewTicker(outputPause)
	defer pause.Stop()
	written := func() (n uint64) {
		for _, o := range outlets {
			n += o.written.Load()
		}
		return n
	}
	for before := written(); ; {
		select {
		case <-done:
			return
		case <-limit.C:
			return
		case <-pause.C:
			n := written()
			if n == before {
				return
			}
			before = n
		}
	}
}

// An outlet is a destination of output, with a goroutine of its own that may block there.
type outlet struct {
	name    string
	events  *eventQueue
	waiting chan piece
	over    chan struct{} // closed when no more output is taken
	blocked atomic.Bool
	written atomic.Uint64 // pieces
	mu      sync.Mutex
	dropped int // bytes
	ended   chan struct{}
}

func newOutlet(name string, events *eventQueue, write func(piece), end func()) *outlet {
	o := &outlet{
		name:    name,
		events:  events,
		waiting: make(chan piece, maxWaiting),
		over:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	go func() {
		defer close(o.ended)
		defer end()
		for p := range o.waiting {
			write(p)
			o.written.Add(1)
			o.blocked.Store(false)
			o.report()
		}
	}()
	return o
}

// put queues p. It waits for room while the outlet makes progress, and drops p if it does not.
func (o *outlet) put(p piece) {
	select {
	case <-o.over:
		o.drop(p)
		return
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
		case <-o.over:
		case <-pause.C:
			o.blocked.Store(true)
		}
	}
	o.drop(p)
}

func (o *outlet) drop(p piece) {
	o.mu.Lock()
	o.dropped += len(p.data)
	o.mu.Unlock()
}

// report emits an event about the output that was dropped.
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

// discard drops what still waits.
func (o *outlet) discard() {
	for p := range o.waiting {
		o.drop(p)
	}
	o.report()
}
