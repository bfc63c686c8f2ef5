// Package testsync lets tests wait for tasks in other goroutines and processes. Only tests import
// it.
package testsync

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WaitLimit bounds each wait for an event that is certain to come. It tells "never" from "late",
// also on a machine with much else to do.
const WaitLimit = time.Minute

// A Rendezvous holds tasks, which may run in other processes, until a test releases them. A task
// dials Addr, writes a line of three numbers (task, worker and process), and reads a line.
type Rendezvous struct {
	Addr string
	t    testing.TB
	l    *net.UnixListener
}

// Held is a task that runs and waits for its release.
type Held struct {
	TaskID      uint64
	Worker, PID int
	c           net.Conn
}

// NewRendezvous opens a rendezvous that closes when the test ends.
func NewRendezvous(t testing.TB) *Rendezvous {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "r") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	addr := filepath.Join(dir, "r")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &Rendezvous{addr, t, l}
}

// Next waits for the next task that runs.
func (r *Rendezvous) Next() *Held {
	r.t.Helper()
	require.NoError(r.t, r.l.SetDeadline(time.Now().Add(WaitLimit)))
	c, err := r.l.Accept()
	require.NoError(r.t, err, "no task came")
	r.t.Cleanup(func() { c.Close() })
	h := &Held{c: c}
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(r.t, err)
	_, err = fmt.Sscan(line, &h.TaskID, &h.Worker, &h.PID)
	require.NoError(r.t, err, "a task wrote %q", line)
	return h
}

// Release lets the task go on with answer.
func (h *Held) Release(answer string) {
	fmt.Fprintln(h.c, answer)
	h.c.Close()
}

// Closed waits until the task, or its process, has closed its side.
func (h *Held) Closed(t testing.TB) {
	t.Helper()
	require.NoError(t, h.c.SetReadDeadline(time.Now().Add(WaitLimit)))
	_, err := h.c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
