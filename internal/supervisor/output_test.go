package supervisor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/tasktype"
)

// A slowHandler waits before each record.
type slowHandler struct {
	slog.Handler
	wait func()
}

func (h slowHandler) Handle(ctx context.Context, r slog.Record) error {
	h.wait()
	return h.Handler.Handle(ctx, r)
}

func slowLogger(w io.Writer, wait func()) *slog.Logger {
	return slog.New(slowHandler{slog.NewTextHandler(w, nil), wait})
}

func TestLastWordsPassASlowLogger_Found06(t *testing.T) {
	var buf testsync.Buffer
	p := startPool(t, func(c *Config) { c.Logger = slowLogger(&buf, func() { time.Sleep(2 * time.Millisecond) }) })
	pid := p.pid(0)
	p.ask(0, "number-and-panic 400")
	e := p.waitExit(pid)
	assert.Contains(t, e.Stderr, "panic: the last straw")
	eventually(t, "the panic is logged", func() bool {
		return strings.Contains(buf.String(), `msg="panic: the last straw`)
	})
	for i := range 400 {
		assert.Contains(t, buf.String(), fmt.Sprintf("msg=\"line %d. x", i))
	}
}

func TestPlannedEndLosesNoLine_Found06(t *testing.T) {
	var buf testsync.Buffer
	p := startPool(t, func(c *Config) { c.Logger = slowLogger(&buf, func() { time.Sleep(time.Millisecond) }) })
	p.ask(0, "number 2000")
	require.NoError(t, p.Reload(t.Context()))
	eventually(t, "the last line is logged", func() bool { return strings.Contains(buf.String(), `msg="line 1999. x`) })
	assert.Equal(t, 2000, strings.Count(buf.String(), `msg="line `))
	assert.Zero(t, p.count(func(e tasktype.Event) bool { return e.Kind == tasktype.EventOutputDropped }))
}

// What a blocked outlet has not taken when the pool ends is reported.
func TestOutputLeftAtTheEndIsCounted_Found06(t *testing.T) {
	unblock := make(chan struct{})
	var mu sync.Mutex
	dropped := 0
	events := newEventQueue(func(e tasktype.Event) {
		n := 0
		_, err := fmt.Sscanf(e.Text, "%d bytes of the workers' output: the log took no more", &n)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		dropped += n
	}, slog.New(slog.DiscardHandler))
	o := openOutputs(Config{Logger: slowLogger(io.Discard, func() { <-unblock })}, events)
	var last tail
	o.copy(strings.NewReader("first line"+strings.Repeat("\n123456789", 999)), stream{}, &last, nil)
	assert.Contains(t, last.String(), "123456789")
	o.close()
	events.close()
	<-events.ended
	close(unblock)
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, 10*999+10-len("first line\n"), dropped, "all but the record that the logger holds")
}

// A process that holds the worker's output after its end does not hide what the worker wrote.
func TestPipeIsReadToItsEnd_Found06(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	want := strings.Repeat("x", 50_000) // fewer than a pipe holds
	_, err = w.WriteString(want)
	require.NoError(t, err)
	end := &pipeEnd{r, maxPipe}
	end.expire()
	got, err := io.ReadAll(end)
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestLongLineIsMarkedAndCutBetweenCharacters_Found07(t *testing.T) {
	var mu sync.Mutex
	var texts, parts []string
	logger := slog.New(recorder(func(r slog.Record) {
		mu.Lock()
		defer mu.Unlock()
		part := ""
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "part" {
				part = a.Value.String()
			}
			return true
		})
		texts, parts = append(texts, r.Message), append(parts, part)
	}))
	events := newEventQueue(nil, slog.New(slog.DiscardHandler))
	o := openOutputs(Config{Logger: logger}, events)
	long := strings.Repeat("x€😀", 5<<20/8)
	o.copy(strings.NewReader("before\n"+long+"\r\nafter\n"), stream{3, 7, "stderr"}, nil, nil)
	o.close()
	events.close()
	<-events.ended

	n := len(texts)
	require.Greater(t, n, 80)
	assert.Equal(t, "before", texts[0])
	assert.Equal(t, "after", texts[n-1])
	assert.Equal(t, long, strings.Join(texts[1:n-1], ""))
	for i, text := range texts {
		assert.True(t, utf8.ValidString(text), "record %d", i)
		assert.LessOrEqual(t, len(text), maxLine)
		want := partMore
		switch i {
		case 0, n - 1:
			want = ""
		case 1:
			want = partFirst
		}
		assert.Equal(t, want, parts[i], "record %d", i)
	}
}

// A recorder is a slog.Handler without attributes and groups.
type recorder func(slog.Record)

func (recorder) Enabled(context.Context, slog.Level) bool        { return true }
func (f recorder) Handle(_ context.Context, r slog.Record) error { f(r); return nil }
func (f recorder) WithAttrs([]slog.Attr) slog.Handler            { return f }
func (f recorder) WithGroup(string) slog.Handler                 { return f }

// Three workers write to one file, in writes that end anywhere.
func TestWholeLinesStayWhole_Found08(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	events := newEventQueue(nil, slog.New(slog.DiscardHandler))
	o := openOutputs(Config{Stdout: f, Stderr: f}, events)
	const lines = 20_000
	var workers sync.WaitGroup
	for w := range 3 {
		r, in := io.Pipe()
		workers.Go(func() { o.copy(r, stream{w, 100 + w, "stdout"}, nil, nil) })
		workers.Go(func() {
			text := ""
			for i := range lines {
				text += fmt.Sprintf("%d %05d %s\n", w, i, strings.Repeat("x", 62+i%40))
				if len(text) > 4000 {
					in.Write([]byte(text[:3999]))
					text = text[3999:]
				}
			}
			in.Write([]byte(text + strings.Repeat("y", maxLine+10)))
			in.Close()
		})
	}
	workers.Wait()
	o.close()
	events.close()
	<-events.ended
	out, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	next := make([]int, 3)
	var marked []string
	for line := range strings.Lines(string(out)) {
		var w, i int
		if n, _ := fmt.Sscanf(line, "%d %d x", &w, &i); n == 2 {
			require.Equal(t, next[w], i)
			require.Equal(t, fmt.Sprintf("%d %05d %s\n", w, i, strings.Repeat("x", 62+i%40)), line)
			next[w]++
			continue
		}
		marked = append(marked, line)
	}
	assert.Equal(t, []int{lines, lines, lines}, next)
	for w := range 3 {
		worker := fmt.Sprintf("worker %d pid %d", w, 100+w)
		assert.Contains(t, marked, fmt.Sprintf("%s… (cut) (%s)\n", strings.Repeat("y", maxLine), worker))
		assert.Contains(t, marked, fmt.Sprintf("(more of the line, %s) %s\n", worker, strings.Repeat("y", 10)))
	}
}
