package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/worker"
)

// childKey tells a re-executed test binary what it is: a kind, then its numbers.
const childKey = "TASKD_CLIENT_TEST_CHILD"

func TestMain(m *testing.M) {
	kind, args, _ := strings.Cut(os.Getenv(childKey), " ")
	switch kind {
	case "worker":
		os.Exit(runWorker(args))
	case "echo":
		os.Exit(runEcho())
	}
	os.Exit(m.Run())
}

// runWorker is the main function of a worker process. Descriptor 3 is the table, 4 the listener; 5
// ends with the parent.
func runWorker(args string) int {
	var number, index int
	var generation uint64
	if _, err := fmt.Sscan(args, &number, &index, &generation); err != nil {
		return 2
	}
	table, err := sharedstate.Open(os.NewFile(3, "table"), true)
	if err != nil {
		return 3
	}
	l, err := listenerOf(4)
	if err != nil {
		return 4
	}
	s := worker.New(workerConfig(table, table.WorkerRow(number), l, index, generation))
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(5, "parent"))
		os.Exit(0)
	}()
	s.Ready()
	fmt.Println("ready")
	if err := s.Serve(); err != nil {
		return 5
	}
	return 0
}

func listenerOf(fd uintptr) (*net.UnixListener, error) {
	f := os.NewFile(fd, "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

func workerConfig(
	table *sharedstate.Table, row sharedstate.WorkerRow, l *net.UnixListener, index int, generation uint64,
) worker.Config {
	return worker.Config{
		Index: index, Generation: generation, Row: row, Table: table, Listener: l,
		MaxPackageSize: 4 << 20,
		Lookup:         lookup,
		Logger:         slog.New(slog.DiscardHandler),
	}
}

// lookup knows the tasks of the tests: echo returns its argument, nap does so after a while.
func lookup(name []byte) (worker.Decoder, bool, string) {
	nap := string(name) == "nap"
	if !nap && string(name) != "echo" {
		return nil, false, "unknown"
	}
	return func(payload []byte) (worker.Task, error) {
		task := &echoTask{nap: nap}
		return task, codec.Decode(payload, &task.argument)
	}, true, ""
}

// An echoTask answers with its argument.
type echoTask struct {
	argument []byte
	nap      bool
}

func (e *echoTask) Run(_ context.Context, info worker.Info) (any, error) {
	if e.nap {
		<-time.After(time.Duration(info.TaskID%4) * time.Millisecond)
	}
	return e.argument, nil
}

func (e *echoTask) OnException(_ context.Context, err error, _ worker.Info) (any, bool, error) {
	return nil, false, err
}

// binaryArgument is an argument of the echo task.
func binaryArgument(b []byte) func([]byte, *codec.Lent) ([]byte, error) {
	return func(dst []byte, lent *codec.Lent) ([]byte, error) { return codec.AppendLending(dst, b, lent) }
}

// runEcho serves the bare echo that calls are compared with: each connection answers frames of four
// bytes of length and a body.
func runEcho() int {
	l, err := listenerOf(4)
	if err != nil {
		return 4
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(5, "parent"))
		os.Exit(0)
	}()
	fmt.Println("ready")
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return 5
		}
		go echoConn(conn)
	}
}

func echoConn(conn *net.UnixConn) {
	defer conn.Close()
	buf := make([]byte, 4<<10)
	have := 0
	for {
		n, err := conn.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		if have < 4 {
			continue
		}
		if whole := 4 + int(binary.BigEndian.Uint32(buf)); have < whole {
			if whole > len(buf) {
				buf = append(buf, make([]byte, whole-len(buf))...)
			}
			continue
		}
		if _, err := conn.Write(buf[:have]); err != nil {
			return
		}
		have = 0
	}
}

// A child is a re-executed test binary.
type child struct {
	cmd  *exec.Cmd
	life *os.File // its end is the child's
}

func spawn(t testing.TB, what string, table *os.File, l *net.UnixListener) *child {
	t.Helper()
	socket, err := l.File()
	require.NoError(t, err)
	defer socket.Close()
	parent, life, err := os.Pipe()
	require.NoError(t, err)
	defer parent.Close()
	c := &child{cmd: exec.Command(os.Args[0]), life: life}
	c.cmd.Env = append(os.Environ(), childKey+"="+what, "GORACE=atexit_sleep_ms=0")
	c.cmd.ExtraFiles = []*os.File{table, socket, parent}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
	return c
}

// kill ends the child at once and reaps it.
func (c *child) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	_ = c.cmd.Wait()
	_ = c.life.Close()
}

// A realPool has real workers, each in a separate process.
type realPool struct {
	*pool
	children []*child
	rows     []sharedstate.ParentRow
}

func newRealPool(t testing.TB, workers, maxRunning int) *realPool {
	t.Helper()
	p := &realPool{pool: newPoolOf(t, workers, maxRunning, 4<<20)}
	for i := range workers {
		row, err := p.table.Allocate(i, 1)
		require.NoError(t, err)
		c := spawn(t, fmt.Sprint("worker ", row.Number(), " ", i, " ", 1), p.table.File(), p.listen(i))
		row.SetPID(c.cmd.Process.Pid)
		p.table.SetCurrent(i, row)
		p.children = append(p.children, c)
		p.rows = append(p.rows, row)
	}
	return p
}

// newBare starts n bare echo processes. It returns a function that connects to them in turn.
func newBare(t testing.TB, n int) func() *net.UnixConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "echo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	var paths []string
	for i := range n {
		path := filepath.Join(dir, strconv.Itoa(i))
		l, err := sys.Listen(path)
		require.NoError(t, err)
		spawn(t, "echo", os.Stdin, l)
		require.NoError(t, l.Close())
		paths = append(paths, path)
	}
	next := 0
	return func() *net.UnixConn {
		next++
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: paths[next%n]})
		require.NoError(t, err)
		return conn
	}
}

// bytesOf is the result of the echo task.
func bytesOf(r Reply) string {
	var b []byte
	if err := codec.Decode(r.Data, &b); err != nil {
		return err.Error()
	}
	return string(b)
}
