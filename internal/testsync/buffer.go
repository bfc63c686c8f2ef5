package testsync

import (
	"fmt"
	"strings"
	"sync"
)

// A Buffer is a strings.Builder that is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Reset forgets what was written.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

// Tail returns the last lines of the buffer, at most 40 of at most 300 bytes each, for the message
// of a failed test.
func (b *Buffer) Tail() string {
	const most, width = 40, 300
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	var out strings.Builder
	if cut := len(lines) - most; cut > 0 {
		fmt.Fprintf(&out, "(%d earlier lines)\n", cut)
		lines = lines[cut:]
	}
	for _, line := range lines {
		if len(line) > width {
			line = line[:width] + "…"
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}
