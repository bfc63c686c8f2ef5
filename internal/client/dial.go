package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A link is one connection to one worker process, which has greeted.
type link struct {
	protocol.Greeting
	conn   *net.UnixConn
	reader *protocol.Reader
	row    sharedstate.Row // of the process that greeted
	id     uint64          // the last one used; the high half is the connection's own
	// A notice has come: lastRead is what the worker read last here.
	noticed  bool
	lastRead uint64
}

// nextID returns an id greater than all before; 0 when the connection has used them up.
func (l *link) nextID() uint64 {
	if uint32(l.id+1) == 0 {
		return 0
	}
	l.id++
	return l.id
}

// read returns the next response that is no greeting.
func (l *link) read() (r protocol.Response, owned bool, err error) {
	for {
		body, owned, err := l.reader.Next()
		if err != nil {
			return protocol.Response{}, false, err
		}
		r, err = protocol.ParseResponse(body)
		if err != nil || r.ID != 0 || !r.OK {
			return r, owned, err
		}
	}
}

func endOf(err error) ending {
	switch {
	case errors.Is(err, io.EOF):
		return eof
	case errors.Is(err, syscall.ECONNRESET):
		return reset
	}
	return broken
}

// usable says whether row still is the one that calls to its index go to.
func (c *Client) usable(row sharedstate.Row, index int, generation uint64) bool {
	now, ok := c.table.Current(index)
	return ok && now == row && row.Generation() == generation && row.Accepting()
}

// How long to wait between two looks: at a full backlog, and at the row while a greeting is awaited.
const (
	firstLook = time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// dial connects to the worker of row and reads its greeting, before which
// nothing is written: the backlog outlives a worker, so only the greeting says who
// will serve. A worker that ends or stops accepting meanwhile is left for another one.
func (c *Client) dial(b *budget, row sharedstate.Row) (*link, *Failure, verdict) {
	index, generation := row.Index(), row.Generation()
	conn, f, v := c.connect(b, row, index, generation)
	if f != nil {
		return nil, f, v
	}
	l := &link{conn: conn, reader: protocol.NewReader(conn, c.cfg.MaxPackageSize)}
	greeted := make(chan error, 1)
	go func() { greeted <- l.greet() }()
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	for look := firstLook; ; {
		select {
		case err := <-greeted:
			if err == nil && c.adopt(l) {
				return l, nil, settled
			}
			_ = conn.Close()
			return nil, unreached(index, row.PID(), err), elsewhere
		case <-timer.C:
		case <-b.ctx.Done():
		case <-b.cut:
		}
		err := b.ended()
		if err == nil && c.usable(row, index, generation) {
			look = min(2*look, lastLook)
			timer.Reset(min(look, b.left(never)))
			continue
		}
		_ = conn.Close()
		<-greeted
		if err != nil {
			f := outOfTime(err, nothing, nil)
			f.Index = index
			return nil, f, settled
		}
		return nil, unreached(index, row.PID(), nil), elsewhere
	}
}

// connect opens the connection. A full backlog answers at once with EAGAIN: that is neither a time-out nor a dead worker.
func (c *Client) connect(b *budget, row sharedstate.Row, index int, generation uint64) (*net.UnixConn, *Failure, verdict) {
	addr := &net.UnixAddr{Net: "unix", Name: c.cfg.SocketPath(index)}
	for look := firstLook; ; look = min(2*look, lastLook) {
		conn, err := net.DialUnix("unix", nil, addr)
		if err == nil {
			return conn, nil, settled
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, unreached(index, row.PID(), err), elsewhere
		}
		b.pause(look)
		if err := b.ended(); err != nil {
			f := outOfTime(err, nothing, nil)
			f.Index = index
			return nil, f, settled
		}
		if !c.usable(row, index, generation) {
			return nil, unreached(index, row.PID(), nil), elsewhere
		}
	}
}

// greet reads the greeting.
func (l *link) greet() error {
	body, _, err := l.reader.Next()
	if err != nil {
		return err
	}
	r, err := protocol.ParseResponse(body)
	if err != nil {
		return err
	}
	g, ok := protocol.ParseGreeting(&r)
	if !ok {
		return fmt.Errorf("no greeting but a response with id %d and status %d came first", r.ID, r.Status)
	}
	l.Greeting = g
	return nil
}

// adopt ties a greeted link to the row of the process that greeted. It fails when that process is not, or no
// longer, the one that serves its index.
func (c *Client) adopt(l *link) bool {
	row, ok := c.table.Current(l.Index)
	if !ok || row.Generation() != l.Generation {
		return false
	}
	l.row = row
	l.id = uint64(c.serial.Add(1)) << 32
	return true
}

// unreached is the failure of a call to a worker that could not be connected to.
func unreached(index, pid int, err error) *Failure {
	f := &Failure{Status: protocol.StatusSockTimeout, Delivery: NotRun, Index: index, PID: pid, Err: err}
	f.Message = fmt.Sprintf("worker %d (pid %d) stopped serving before it took the package", index, pid)
	if err != nil {
		f.Message = fmt.Sprintf("worker %d (pid %d) cannot be reached: %v", index, pid, err)
	}
	return f
}
