// Package testkit has what the tests of several packages need. Nothing else imports it.
package testkit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience bounds every wait for an event that is certain to come.
const Patience = 30 * time.Second

// A Meeting is where tasks, which may run in other processes, report that they run and wait for
// their result. A task dials Addr, writes a line of three numbers, and reads one.
type Meeting struct {
	Addr string
	t    testing.TB
	l    *net.UnixListener
}

// A Guest is a task that has come.
type Guest struct {
	TaskID      uint64
	Worker, PID int
	c           net.Conn
}

// NewMeeting opens a meeting that ends with the test.
func NewMeeting(t testing.TB) *Meeting {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "m") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	addr := filepath.Join(dir, "m")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &Meeting{addr, t, l}
}

// Next waits for the next task that runs.
func (m *Meeting) Next() *Guest {
	m.t.Helper()
	require.NoError(m.t, m.l.SetDeadline(time.Now().Add(Patience)))
	c, err := m.l.Accept()
	require.NoError(m.t, err, "no task came")
	m.t.Cleanup(func() { c.Close() })
	g := &Guest{c: c}
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(m.t, err)
	_, err = fmt.Sscan(line, &g.TaskID, &g.Worker, &g.PID)
	require.NoError(m.t, err, "a task wrote %q", line)
	return g
}

// Leave lets the task go on with answer.
func (g *Guest) Leave(answer string) {
	fmt.Fprintln(g.c, answer)
	g.c.Close()
}

// Gone waits until the task, or its process, has closed its side.
func (g *Guest) Gone(t testing.TB) {
	t.Helper()
	require.NoError(t, g.c.SetReadDeadline(time.Now().Add(Patience)))
	_, err := g.c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// A Buffer is a strings.Builder for several goroutines.
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
