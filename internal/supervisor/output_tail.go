package supervisor

import (
	"bytes"
	"sync"
)

const (
	tailBytes   = 4 << 10
	tailLines   = 20
	maxHeadline = 512
	maxCrash    = 256 << 10 // bytes of output of a crash after its first line
)

// A tail keeps the last bytes of a stream, and the lines with which a Go program begins to report a
// crash, before its long list of goroutines.
type tail struct {
	mu       sync.Mutex
	data     []byte
	line     []byte // the beginning of the current line
	headline []byte // the last lines that begin a crash
	after    int    // bytes since the headline
}

func (t *tail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range bytes.Lines(p) {
		t.after += len(part)
		t.line = append(t.line, part[:min(len(part), maxHeadline-len(t.line))]...)
		if part[len(part)-1] == '\n' {
			t.endLine()
		}
	}
	t.data = append(t.data, p[max(0, len(p)-tailBytes):]...)
	t.data = t.data[max(0, len(t.data)-tailBytes):]
}

// endLine ends the current line.
func (t *tail) endLine() {
	if beginsCrash(t.line) {
		t.note(bytes.TrimSpace(t.line))
	}
	t.line = t.line[:0]
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
	t.endLine() // the process may have ended within a line
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
