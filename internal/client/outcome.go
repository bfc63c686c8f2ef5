package client

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// answered turns a worker's response, whose Data is memory of its own, into the call's outcome.
func answered(l *link, r *protocol.Response) (Reply, *Failure, verdict) {
	if r.OK {
		return Reply{Data: r.Data, TaskID: r.TaskID, Index: l.Index}, nil, settled
	}
	f := &Failure{Status: r.Status, TaskID: r.TaskID, Index: l.Index, PID: l.PID, Message: r.Text()}
	f.Delivery = refused(r.Status, f.Message)
	if r.Status == protocol.StatusBusy {
		return Reply{}, f, busy
	}
	return Reply{}, f, settled
}

// outOfTime is the failure of a call whose deadline, context or pool has ended.
func outOfTime(err error, sent extent, l *link) *Failure {
	f := &Failure{Status: protocol.StatusSockTimeout, Index: -1, Err: err}
	f.Delivery = evidence{sent: sent, end: timedOut}.delivery()
	where := "before a worker was reached"
	if l != nil {
		f.Index, f.PID = l.Index, l.PID
		where = fmt.Sprintf("while worker %d (pid %d) had not answered", l.Index, l.PID)
		if f.Delivery == NotRun {
			where = fmt.Sprintf("before worker %d (pid %d) had taken the package", l.Index, l.PID)
		}
	}
	why := err.Error()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		why = "its deadline has passed"
	}
	f.Message = fmt.Sprintf("the call ended %s: %s", where, why)
	return f
}

func closed() *Failure {
	return &Failure{Status: protocol.StatusBusy, Delivery: NotRun, Index: -1, Message: ErrClosed.Error(), Err: ErrClosed}
}

func tooLarge(err error) *Failure {
	f := &Failure{Status: protocol.StatusPackageTooLarge, Delivery: NotRun, Index: -1, Message: err.Error(), Err: err}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		f.Message = e.Text
	}
	return f
}

// unanswered is the outcome of a call whose connection brought no answer.
func (c *Client) unanswered(b *budget, l *link, e evidence, err error) (Reply, *Failure, verdict) {
	select {
	case <-b.cut:
		return Reply{}, outOfTime(ErrClosed, e.sent, l), settled
	default:
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLate) {
		return Reply{}, outOfTime(b.late(), e.sent, l), settled
	}
	if e.sent == nothing {
		return Reply{}, unreached(l.Index, l.PID, err), elsewhere
	}
	return Reply{}, c.lost(b, l, e, err), settled
}

// endOfWorker waits a little for the end record of the worker's process, which the parent writes
// when it has reaped it; ok is false where it does not come.
func (c *Client) endOfWorker(b *budget, l *link, lost int64) (end sharedstate.End, ok bool) {
	until := min(lost+int64(endWait), b.deadline)
	for step := time.Millisecond; ; step = min(2*step, 16*time.Millisecond) {
		if end, ok := l.row.Ended(l.Generation); ok {
			return end, true
		}
		left := until - sys.Now()
		if left <= 0 || b.ended() != nil {
			return sharedstate.End{}, false
		}
		b.pause(min(step, time.Duration(left)))
	}
}

// endWait is how long a lost call waits for its worker's end record.
const endWait = 200 * time.Millisecond

// lost is the failure of a call whose connection ended without an answer. What the row says was
// read last is proof only once the process is gone: one that lives may have lost the connection to
// a task that closed it, and may still read what came on it.
func (c *Client) lost(b *budget, l *link, e evidence, cause error) *Failure {
	how := "the connection ended"
	end, ok := c.endOfWorker(b, l, e.at)
	if ok {
		if c.cfg.Describe != nil {
			how = c.cfg.Describe(end)
		}
		if !e.readKnown {
			e.lastRead, e.readKnown = l.row.LastRead(e.id)
		}
		e.notBegun = l.row.NotBegun(e.id)
	}
	f := &Failure{Status: protocol.StatusSockTimeout, Delivery: e.delivery(), Index: l.Index, PID: l.PID, Err: cause, End: end}
	f.Message = fmt.Sprintf("worker %d (pid %d) was lost: %s", l.Index, l.PID, how)
	return f
}
