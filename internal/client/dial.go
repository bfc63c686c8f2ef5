package client

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A link is a connection to a worker process that has sent its greeting.
type link struct {
	protocol.Greeting
	conn   *net.UnixConn
	reader *protocol.Reader
	row    sharedstate.Row // of that process
	id     uint64          // the last one used; the high half identifies the connection
	// noticed: the worker has announced its drain, and lastRead is the last id that it read here.
	noticed  bool
	lastRead uint64
}

// nextID returns an id that is greater than all earlier ones.
func (l *link) nextID() uint64 {
	l.id++
	return l.id
}

// usedUp reports whether n more ids would overflow into the high half.
func (l *link) usedUp(n int) bool { return uint64(uint32(l.id))+uint64(n) > math.MaxUint32 }

// read returns the next response that is not a greeting.
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

// A target is the process that owned the row when the row was chosen.
type target struct {
	row        sharedstate.Row
	index      int
	generation uint64
}

// usable reports whether the target still serves its index.
func (c *Client) usable(to target) bool {
	now, ok := c.table.Current(to.index)
	return ok && now == to.row && to.row.Generation() == to.generation && to.row.Accepting()
}

// A full backlog is polled, and so is the row during the wait for a greeting. The interval doubles
// from minPoll to maxPoll.
const (
	minPoll = time.Millisecond
	maxPoll = 100 * time.Millisecond
)

// dial connects to the worker of row and reads its greeting. Nothing is written before that: the
// backlog outlives a worker, so only the greeting says which process will serve the connection. If
// the worker ends or stops accepting meanwhile, the outcome is elsewhere.
func (c *Client) dial(b *budget, row sharedstate.Row) (*link, *Failure, outcome) {
	to := target{row, row.Index(), row.Generation()}
	if f, o := c.checkTarget(b, to); f != nil {
		return nil, f, o
	}
	for poll := minPoll; ; poll = min(2*poll, maxPoll) {
		l, f, o := c.open(b, to)
		if f != nil {
			return nil, f, o
		}
		if c.bind(l, to.index) {
			return l, nil, final
		}
		// The predecessor of the target accepts until it learns that it is replaced.
		_ = l.conn.Close()
		if f, o := c.pollTarget(b, to, poll); f != nil {
			return nil, f, o
		}
	}
}

// open makes one connection and waits for its greeting.
func (c *Client) open(b *budget, to target) (*link, *Failure, outcome) {
	conn, f, o := c.connect(b, to)
	if f != nil {
		return nil, f, o
	}
	l := &link{conn: conn, reader: protocol.NewReader(conn, c.cfg.MaxPackageSize)}
	greeted := make(chan error, 1)
	go func() { greeted <- l.greet() }()
	timer := time.NewTimer(minPoll)
	defer timer.Stop()
	for poll := minPoll; ; {
		select {
		case err := <-greeted:
			if err == nil {
				return l, nil, final
			}
			_ = conn.Close()
			return nil, unreached(to.index, to.row.PID(), err), elsewhere
		case <-timer.C:
		case <-b.ctx.Done():
		case <-b.cut:
		}
		if f, o := c.checkTarget(b, to); f != nil {
			_ = conn.Close()
			<-greeted
			return nil, f, o
		}
		poll = min(2*poll, maxPoll)
		timer.Reset(min(poll, b.left(never)))
	}
}

// checkTarget returns a failure if the call must end, or if the target no longer serves its index.
func (c *Client) checkTarget(b *budget, to target) (*Failure, outcome) {
	if err := b.ended(); err != nil {
		f := outOfTime(err, sentNothing, nil)
		f.Index, f.PID = to.index, to.row.PID()
		return f, final
	}
	if !c.usable(to) {
		return unreached(to.index, to.row.PID(), nil), elsewhere
	}
	return nil, final
}

// pollTarget waits for the poll interval, then checks the target.
func (c *Client) pollTarget(b *budget, to target, poll time.Duration) (*Failure, outcome) {
	b.pause(poll)
	return c.checkTarget(b, to)
}

// connect opens the connection and checks the user of the process that listens. EAGAIN means that the backlog is full, not that the worker is dead:
// connect tries again.
func (c *Client) connect(b *budget, to target) (*net.UnixConn, *Failure, outcome) {
	addr := &net.UnixAddr{Net: "unix", Name: c.cfg.SocketPath(to.index)}
	for poll := minPoll; ; poll = min(2*poll, maxPoll) {
		conn, err := dialTrusted(addr)
		if err == nil {
			return conn, nil, final
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, unreached(to.index, to.row.PID(), err), elsewhere
		}
		if f, o := c.pollTarget(b, to, poll); f != nil {
			return nil, f, o
		}
	}
}

// dialTrusted connects to addr. A process of another user may have put a socket of its own there, so
// the peer must be a process of this user or of root.
func dialTrusted(addr *net.UnixAddr) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return nil, err
	}
	peer, err := sys.Peer(conn)
	if err == nil {
		err = peer.Check()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
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
		return fmt.Errorf("the first response is not a greeting, it has id %d and status %d", r.ID, r.Status)
	}
	l.Greeting = g
	return nil
}

// bind sets the row of the process that sent the greeting. It returns false if another process
// serves the index.
func (c *Client) bind(l *link, index int) bool {
	row, ok := c.table.Current(index)
	if !ok || l.Index != index || row.Generation() != l.Generation {
		return false
	}
	l.row = row
	l.id = uint64(c.serial.Add(1)) << 32
	return true
}

// unreached returns the failure of a call whose worker could not be reached.
func unreached(index, pid int, err error) *Failure {
	f := &Failure{Status: protocol.StatusSockTimeout, Delivery: NotRun, Index: index, PID: pid, Err: err}
	f.Message = fmt.Sprintf("worker %d (pid %d) stopped serving before it took the package", index, pid)
	if err != nil {
		f.Message = fmt.Sprintf("worker %d (pid %d) cannot be reached: %v", index, pid, err)
	}
	return f
}
