package client

import (
	"errors"
	"fmt"
	"io"
	"math"
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

// nextID returns an id greater than all before.
func (l *link) nextID() uint64 {
	l.id++
	return l.id
}

// usedUp says whether another n ids would run into the connection's own half.
func (l *link) usedUp(n int) bool { return uint64(uint32(l.id))+uint64(n) > math.MaxUint32 }

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

// A target is the process that a row belonged to when it was chosen.
type target struct {
	row        sharedstate.Row
	index      int
	generation uint64
}

// usable says whether calls to the target's index still go to it.
func (c *Client) usable(to target) bool {
	now, ok := c.table.Current(to.index)
	return ok && now == to.row && to.row.Generation() == to.generation && to.row.Accepting()
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
	to := target{row, row.Index(), row.Generation()}
	if f, v := c.stillWanted(b, to); f != nil {
		return nil, f, v
	}
	for look := firstLook; ; look = min(2*look, lastLook) {
		l, f, v := c.open(b, to)
		if f != nil {
			return nil, f, v
		}
		if c.adopt(l, to.index) {
			return l, nil, settled
		}
		// The target's predecessor accepts until it hears that it is replaced.
		_ = l.conn.Close()
		if f, v := c.lookAgain(b, to, look); f != nil {
			return nil, f, v
		}
	}
}

// open makes one connection and waits for its greeting.
func (c *Client) open(b *budget, to target) (*link, *Failure, verdict) {
	conn, f, v := c.connect(b, to)
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
			if err == nil {
				return l, nil, settled
			}
			_ = conn.Close()
			return nil, unreached(to.index, to.row.PID(), err), elsewhere
		case <-timer.C:
		case <-b.ctx.Done():
		case <-b.cut:
		}
		if f, v := c.stillWanted(b, to); f != nil {
			_ = conn.Close()
			<-greeted
			return nil, f, v
		}
		look = min(2*look, lastLook)
		timer.Reset(min(look, b.left(never)))
	}
}

// stillWanted returns why a connection to the target is not to be waited for any longer, or nil.
func (c *Client) stillWanted(b *budget, to target) (*Failure, verdict) {
	if err := b.ended(); err != nil {
		f := outOfTime(err, nothing, nil)
		f.Index, f.PID = to.index, to.row.PID()
		return f, settled
	}
	if !c.usable(to) {
		return unreached(to.index, to.row.PID(), nil), elsewhere
	}
	return nil, settled
}

// lookAgain waits a little before the next try.
func (c *Client) lookAgain(b *budget, to target, look time.Duration) (*Failure, verdict) {
	b.pause(look)
	return c.stillWanted(b, to)
}

// connect opens the connection. A full backlog answers at once with EAGAIN: that is neither a time-out nor a dead worker.
func (c *Client) connect(b *budget, to target) (*net.UnixConn, *Failure, verdict) {
	addr := &net.UnixAddr{Net: "unix", Name: c.cfg.SocketPath(to.index)}
	for look := firstLook; ; look = min(2*look, lastLook) {
		conn, err := net.DialUnix("unix", nil, addr)
		if err == nil {
			return conn, nil, settled
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, unreached(to.index, to.row.PID(), err), elsewhere
		}
		if f, v := c.lookAgain(b, to, look); f != nil {
			return nil, f, v
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
// longer, the one that serves the index.
func (c *Client) adopt(l *link, index int) bool {
	row, ok := c.table.Current(index)
	if !ok || l.Index != index || row.Generation() != l.Generation {
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
