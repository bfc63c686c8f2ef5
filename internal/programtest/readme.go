package programtest

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// InReadme checks that the first Go program below a heading of a document is the file, word for
// word from its package clause on.
func InReadme(t testing.TB, document, heading, file string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	_, part, found := strings.Cut(string(text), "\n"+heading+"\n")
	require.True(t, found, "%s has no heading %q", document, heading)
	_, part, found = strings.Cut(part, "```go\n")
	require.True(t, found)
	program, _, found := strings.Cut(part, "```\n")
	require.True(t, found)

	source, err := os.ReadFile(file)
	require.NoError(t, err)
	_, want, found := strings.Cut(string(source), "\npackage main\n")
	require.True(t, found)
	assert.Equal(t, "package main\n"+want, program)
}

// InFiles checks that each block of Go code of a document stands in one of the files.
func InFiles(t testing.TB, document string, files ...string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	var sources strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		sources.Write(source)
	}
	parts := strings.Split(string(text), "```go\n")
	require.Greater(t, len(parts), 1, "%s has no Go code", document)
	for _, part := range parts[1:] {
		block, _, _ := strings.Cut(part, "```\n")
		if !strings.Contains(sources.String(), block) {
			t.Errorf("no file has this block of %s:\n%s", document, block)
		}
	}
}

// ShortTempDir makes a folder for the sockets of a pool, whose paths are at most 100 bytes long.
func ShortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "p")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// FreeAddr returns an address on which nothing listens.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// WaitListening waits until the program listens on addr.
func (p *Program) WaitListening(addr string) {
	p.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-p.ended:
			p.t.Fatalf("the program ended; standard error:\n%s", p.stderr.String())
		default:
		}
	}
	p.t.Fatalf("nothing listens on %s after %s", addr, limit)
}
