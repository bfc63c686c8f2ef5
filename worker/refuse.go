package worker

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// backlogQuiet is for how long no connection must arrive for a backlog to count as empty.
const backlogQuiet = 10 * time.Millisecond

// A refuser answers every package of the connections that it accepts with -2.
type refuser struct {
	greeting []byte
	max      int  // bytes of a whole frame
	barrier  bool // CloseRead is exact
	admits   func(*net.UnixConn) bool
	grace    time.Duration // for each connection
	wg       sync.WaitGroup
}

// Refuse accepts the connections in the backlog of l, answers every package on them with -2, and
// returns after at most within. It serves an index whose worker is gone at the end of the pool. l
// stays open, without a deadline.
func Refuse(l *net.UnixListener, index int, maxPackageSize int, within time.Duration) {
	s := &Server{cfg: Config{Index: index}, log: slog.Default()}
	r := &refuser{
		greeting: protocol.AppendGreeting(
			nil,
			protocol.Greeting{Index: index, PID: os.Getpid(), MaxPackageSize: maxPackageSize},
		),
		max:     maxPackageSize,
		barrier: sys.BarrierRead,
		admits:  s.admitsPeer,
		grace:   within,
	}
	r.backlog(l, within)
	r.wg.Wait()
	_ = l.SetDeadline(time.Time{})
}

// backlog accepts until no connection waits, at most for within.
func (r *refuser) backlog(l *net.UnixListener, within time.Duration) {
	for end := time.Now().Add(within); time.Now().Before(end); {
		if l.SetDeadline(time.Now().Add(backlogQuiet)) != nil {
			return
		}
		nc, err := l.AcceptUnix()
		switch {
		case err == nil:
			r.wg.Go(func() { r.refuse(nc) })
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, until the connections that are open now close
			time.Sleep(backlogQuiet)
		}
	}
}

// refuse answers the packages on nc. An error ends the connection: then no client waits for an
// answer.
func (r *refuser) refuse(nc *net.UnixConn) {
	defer nc.Close()
	if nc.SetDeadline(time.Now().Add(r.grace)) != nil || !r.admits(nc) {
		return
	}
	if _, err := nc.Write(r.greeting); err != nil {
		return
	}
	if r.barrier {
		_ = sys.CloseRead(nc)
	} else if _, err := nc.Write(protocol.AppendNotice(nil, 0)); err != nil {
		return
	}
	var last uint64
	in := protocol.NewReader(nc, r.max)
	for {
		body, _, err := in.Next()
		if err != nil {
			r.end(nc, err, last)
			return
		}
		p, err := protocol.ParsePackage(body)
		answer := protocol.Response{ID: p.ID, Status: protocol.StatusBusy}
		var bad *protocol.Error
		if errors.As(err, &bad) {
			answer.ID, answer.Status = bad.ID, bad.Status
		}
		last = max(last, answer.ID)
		if r.send(nc, &answer) != nil {
			return
		}
	}
}

func (r *refuser) send(nc *net.UnixConn, answer *protocol.Response) error {
	frame := protocol.AppendResponse(protocol.BeginFrame(nil), answer)
	if err := protocol.EndFrame(frame, r.max); err != nil {
		return err
	}
	_, err := nc.Write(frame)
	return err
}

func (r *refuser) end(nc *net.UnixConn, err error, last uint64) {
	var bad *protocol.Error
	if errors.As(err, &bad) && bad.Status == protocol.StatusPackageTooLarge {
		if r.send(nc, &protocol.Response{Status: bad.Status}) != nil {
			return
		}
		discard(nc, r.grace)
	}
	// The client may be gone.
	if nc.SetDeadline(time.Now().Add(r.grace)) == nil {
		_, _ = nc.Write(protocol.AppendNotice(nil, last))
	}
}
