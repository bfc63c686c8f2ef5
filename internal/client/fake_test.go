package client

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

const testLimit = 64 << 10 // MaxPackageSize of the fake pools, in bytes

// limit bounds each wait for an event that is certain to come.
const limit = time.Minute

// A pool is a table, sockets and a client, with fake workers behind them.
type pool struct {
	t      testing.TB
	dir    string
	table  *sharedstate.Parent
	client *Client
}

func newPool(t testing.TB, workers, maxRunning int) *pool {
	t.Helper()
	return newPoolOf(t, workers, maxRunning, testLimit)
}

func newPoolOf(t testing.TB, workers, maxRunning, maxPackageSize int) *pool {
	t.Helper()
	table, err := sharedstate.Create(workers, maxRunning)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "client")
	require.NoError(t, err)
	p := &pool{t: t, dir: dir, table: table}
	p.client = New(Config{
		Table: table.Table, SocketPath: p.path, MaxPackageSize: maxPackageSize,
		Describe: func(e sharedstate.End) string { return "killed by signal " + strconv.Itoa(e.Signal) },
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		require.NoError(t, p.client.Close(ctx))
		require.NoError(t, table.Close())
		require.NoError(t, os.RemoveAll(dir))
	})
	return p
}

// loadWorker makes worker 0 look busy, so that calls to it share a connection.
func (p *pool) loadWorker() {
	p.t.Helper()
	if row, _ := p.table.Current(0); !row.Accepting() || p.table.Closed() {
		return
	}
	for range exclusiveCalls {
		row, ok := p.client.chooser.Pick()
		require.True(p.t, ok)
		p.t.Cleanup(func() { p.client.chooser.Done(row) })
	}
}

func (p *pool) path(index int) string { return filepath.Join(p.dir, strconv.Itoa(index)+".sock") }

func (p *pool) listen(index int) *net.UnixListener {
	p.t.Helper()
	l, err := sys.Listen(p.path(index))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = l.Close() })
	return l
}

// A testRow is a row as its parent and its worker write it.
type testRow struct {
	sharedstate.WorkerRow
	parent sharedstate.ParentRow
}

func (r testRow) Finish(e sharedstate.End) { r.parent.Finish(e) }

// row allocates the row of a generation of index, and makes it current and accepting.
func (p *pool) row(index int, generation uint64) testRow {
	p.t.Helper()
	parent, err := p.table.Allocate(index, generation)
	require.NoError(p.t, err)
	row := testRow{p.table.WorkerRow(parent.Number()), parent}
	parent.SetPID(1000*(index+1) + int(generation))
	row.SetAccepting(true)
	p.table.SetCurrent(index, parent)
	return row
}

// worker starts a fake worker of the first generation.
func (p *pool) worker(index int, handle handler) *fake {
	p.t.Helper()
	return p.serve(index, 1, p.listen(index), p.row(index, 1), handle)
}

// raw starts a fake worker that only calls greet on a connection.
func (p *pool) raw(index int, greet func(*fakeConn) error) *fake {
	p.t.Helper()
	return p.run(&fake{index: index, generation: 1, listener: p.listen(index), row: p.row(index, 1), greet: greet})
}

func (p *pool) serve(index int, generation uint64, l *net.UnixListener, row testRow, handle handler) *fake {
	return p.run(&fake{index: index, generation: generation, row: row, listener: l, handle: handle})
}

func (p *pool) run(f *fake) *fake {
	f.t, f.stopped = p.t, make(chan struct{})
	f.tasks.Go(f.accept)
	p.t.Cleanup(f.close)
	return f
}

// A handler acts on one package that a fake worker has read. An error closes the connection.
type handler func(c *fakeConn, p protocol.Package) error

// A fake speaks the worker's end of the protocol.
type fake struct {
	t          testing.TB
	index      int
	generation uint64
	row        testRow
	listener   *net.UnixListener
	handle     handler
	stopped    chan struct{}           // closed when it no longer accepts
	greet      func(c *fakeConn) error // instead of the greeting and the reading
	accepted   atomic.Int64
	packages   atomic.Int64
	tasks      sync.WaitGroup
	mu         sync.Mutex
	conns      []*fakeConn
}

type fakeConn struct {
	*fake
	conn  *net.UnixConn
	place int
	mu    sync.Mutex // one write at a time
}

// handOver stops accepting and returns the listener for a successor.
func (f *fake) handOver() *net.UnixListener {
	require.NoError(f.t, f.listener.SetDeadline(time.Unix(1, 0)))
	<-f.stopped
	require.NoError(f.t, f.listener.SetDeadline(time.Time{}))
	return f.listener
}

func (f *fake) accept() {
	defer close(f.stopped)
	for {
		conn, err := f.listener.AcceptUnix()
		if err != nil {
			return
		}
		f.accepted.Add(1)
		c := &fakeConn{fake: f, conn: conn, place: f.row.ConnOpen()}
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		f.tasks.Go(c.serve)
	}
}

func (f *fake) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.conn.Close()
	}
	f.mu.Unlock()
	f.tasks.Wait()
}

func (c *fakeConn) serve() {
	defer c.conn.Close()
	if c.greet != nil {
		_ = c.greet(c)
		return
	}
	if err := c.write(protocol.AppendGreeting(nil, c.greeting())); err != nil {
		return
	}
	reader := protocol.NewReader(c.conn, testLimit)
	for {
		body, _, err := reader.Next()
		if err != nil {
			return
		}
		p, err := protocol.ParsePackage(append([]byte(nil), body...))
		if err != nil {
			c.t.Errorf("fake worker: %v", err)
			return
		}
		c.packages.Add(1)
		if err := c.handle(c, p); err != nil {
			return
		}
	}
}

func (f *fake) greeting() protocol.Greeting {
	return protocol.Greeting{Index: f.index, Generation: f.generation, PID: f.row.PID(), MaxPackageSize: testLimit}
}

func (c *fakeConn) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(b)
	return err
}

func (c *fakeConn) respond(r protocol.Response) error {
	b := protocol.AppendResponse(protocol.BeginFrame(nil), &r)
	if err := protocol.EndFrame(b, testLimit); err != nil {
		return err
	}
	return c.write(b)
}

func (c *fakeConn) refuse(id uint64, s protocol.Status, text string) error {
	return c.respond(protocol.Response{ID: id, Status: s, Data: protocol.AppendText(nil, text)})
}

// drain sends a notice with the last id and closes the reading side, so that the reader ends.
func (c *fakeConn) drain(last uint64) error {
	if err := c.write(protocol.AppendNotice(nil, last)); err != nil {
		return err
	}
	return sys.CloseRead(c.conn)
}

// echo answers with the payload.
func echo(c *fakeConn, p protocol.Package) error {
	return c.respond(protocol.Response{ID: p.ID, OK: true, Data: p.Payload, TaskID: p.ID})
}

var errHangUp = errors.New("hang up")

// hangUp closes the connection without an answer.
func hangUp(*fakeConn, protocol.Package) error { return errHangUp }

// silent answers nothing.
func silent(*fakeConn, protocol.Package) error { return nil }

// unreadThenClosed closes the socket while a frame waits in it unread.
func unreadThenClosed(c *fakeConn) error {
	if err := c.write(protocol.AppendGreeting(nil, c.greeting())); err != nil {
		return err
	}
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return n > 0 || err != unix.EAGAIN
	})
}

// readUntilEOF keeps a greeted connection open without handling anything.
func readUntilEOF(c *fakeConn) error {
	_, err := io.Copy(io.Discard, c.conn)
	return err
}

// text returns a Payload that appends s.
func text(s string) func([]byte, *codec.Lent) ([]byte, error) {
	return func(dst []byte, lent *codec.Lent) ([]byte, error) { return codec.AppendLending(dst, s, lent) }
}

func within(d time.Duration) int64 { return sys.Now() + int64(d) }
