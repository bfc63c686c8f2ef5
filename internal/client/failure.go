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

// A Failure describes a failed call.
type Failure struct {
	Status   protocol.Status
	Delivery Delivery
	TaskID   uint64 // 0: the call took no slot, or unknown
	Index    int    // of the worker; -1: none was chosen
	PID      int    // of the worker; 0: unknown
	Message  string
	Err      error           // the cause, if there is one
	End      sharedstate.End // how the worker ended, if it did; zero: unknown
}

// Error returns the status and the message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return fmt.Sprintf("status %d: %s", int(f.Status), f.Status.Message())
	}
	return fmt.Sprintf("status %d: %s", int(f.Status), f.Message)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// answered turns a worker's response into the result of the call, which takes over the response's
// Data.
func answered(l *link, r *protocol.Response) (Reply, *Failure, outcome) {
	if r.OK {
		return Reply{Data: r.Data, TaskID: r.TaskID, Index: l.Index}, nil, final
	}
	f := &Failure{Status: r.Status, TaskID: r.TaskID, Index: l.Index, PID: l.PID, Message: r.Text()}
	f.Delivery = deliveryOf(r.Status, f.Message)
	if r.Status == protocol.StatusBusy {
		return Reply{}, f, busy
	}
	return Reply{}, f, final
}

// outOfTime returns the failure of a call whose deadline has passed, or whose context or pool has
// ended.
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

// unanswered returns the result of a call that got no answer on its connection.
func (c *Client) unanswered(b *budget, l *link, e evidence, err error) (Reply, *Failure, outcome) {
	select {
	case <-b.cut:
		return Reply{}, outOfTime(ErrClosed, e.sent, l), final
	default:
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLate) {
		return Reply{}, outOfTime(b.lateErr(), e.sent, l), final
	}
	if e.sent == sentNothing {
		return Reply{}, unreached(l.Index, l.PID, err), elsewhere
	}
	return Reply{}, c.lost(b, l, e, err), final
}

// endOfWorker waits at most endWait for the end record of the worker, which the parent writes when
// it has reaped the process. ok is false if the record does not come.
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

// endWait is how long a lost call waits for the end record of its worker.
const endWait = 200 * time.Millisecond

// lost returns the failure of a call whose connection ended without an answer. The id that the row
// says was read last is proof only if the process has ended. In a living process a task may have
// closed the connection, and the worker may still read what arrived on it.
func (c *Client) lost(b *budget, l *link, e evidence, cause error) *Failure {
	how := "the connection ended"
	end, ended := c.endOfWorker(b, l, e.at)
	if !ended { // the parent is slow; the worker may have said why
		end.Reason = l.row.Cause(l.Generation)
	}
	if (ended || end.Reason != "") && c.cfg.Describe != nil {
		how = c.cfg.Describe(end)
	}
	if ended {
		if !e.readKnown {
			e.lastRead, e.readKnown = l.row.LastRead(e.id)
		}
		e.notBegun = l.row.NotBegun(e.id)
	}
	return &Failure{
		Status: protocol.StatusSockTimeout, Delivery: e.delivery(), Index: l.Index, PID: l.PID, Err: cause, End: end,
		Message: fmt.Sprintf("worker %d (pid %d) was lost: %s", l.Index, l.PID, how),
	}
}
