package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// A failureCase is one way in which a call fails.
type failureCase struct {
	name      string
	pool      func(p *pool)
	call      func(call *Call)
	before    int // calls that succeed first
	status    protocol.Status
	want      Delivery
	shared    *Delivery // on a shared connection, if it differs there
	exclusive bool      // impossible on a shared connection
	words     string    // in the message
}

// runFailures runs each case on an exclusive connection and on a shared one.
func runFailures(t *testing.T, cases []failureCase) {
	t.Helper()
	for _, c := range cases {
		t.Run("own connection/"+c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, false, c.want)
		})
		if c.exclusive {
			continue
		}
		t.Run("shared connection/"+c.name, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if c.shared != nil {
				want = *c.shared
			}
			c.check(t, true, want)
		})
	}
}

func (c failureCase) check(t *testing.T, share bool, want Delivery) {
	p := newPool(t, 1, 16)
	c.pool(p)
	if share {
		p.loadWorker()
	}
	for range c.before {
		_, f := p.client.Do(t.Context(), syncCall(""))
		require.Nil(t, f)
	}
	call := syncCall("x")
	if c.call != nil {
		c.call(call)
	}
	_, f := p.client.Do(t.Context(), call)
	require.NotNil(t, f)
	require.Equal(t, c.status, f.Status, f.Message)
	require.Equal(t, want, f.Delivery, f.Message)
	require.Contains(t, f.Message, c.words)
	if p.table.Closed() {
		require.ErrorIs(t, f, ErrClosed)
	}
}

// big is an argument that just fits the fake workers' limit. Fifty of it fit no socket buffer.
var big = strings.Repeat("x", testLimit-100)

func sendsFiftyBig(call *Call) { call.Payload = text(strings.Repeat(big, 50)) }

// endsSoon sets a deadline that the test waits for.
func endsSoon(call *Call) { call.Deadline = within(500 * time.Millisecond) }

// takesLargeFrames starts a fake worker that greets with a limit of 8 MiB, as the client has, then
// does after.
func takesLargeFrames(after func(*fakeConn) error) func(*pool) {
	return func(p *pool) {
		p.client.cfg.MaxPackageSize = 8 << 20
		p.raw(0, func(c *fakeConn) error {
			g := c.greeting()
			g.MaxPackageSize = 8 << 20
			if err := c.write(protocol.AppendGreeting(nil, g)); err != nil {
				return err
			}
			return after(c)
		})
	}
}

// refusesByHeader reads the header of a frame and answers that the frame is too large.
func refusesByHeader(c *fakeConn) error {
	if _, err := io.ReadFull(c.conn, make([]byte, protocol.HeaderSize)); err != nil {
		return err
	}
	if err := c.refuse(0, protocol.StatusPackageTooLarge, "over my limit"); err != nil {
		return err
	}
	if err := sys.CloseRead(c.conn); err != nil {
		return err
	}
	return readUntilEOF(c) // else the client stays blocked in its write
}

func readsHundredBytes(c *fakeConn) error {
	_, err := io.ReadFull(c.conn, make([]byte, 100))
	return err
}

// answers starts a fake worker that answers each call with the status.
func answers(s protocol.Status, message string) func(*pool) {
	return func(p *pool) {
		p.worker(0, func(c *fakeConn, pkg protocol.Package) error { return c.refuse(pkg.ID, s, message) })
	}
}

// handles starts a fake worker with the handler.
func handles(h handler) func(*pool) { return func(p *pool) { p.worker(0, h) } }

func TestFailuresBeforeAWorkerIsReached(t *testing.T) {
	t.Parallel()
	runFailures(t, []failureCase{
		{name: "no worker accepts", pool: func(p *pool) { p.row(0, 1).SetAccepting(false) },
			status: -2, want: NotRun, words: "of 1 workers 0 are full and 1 do not accept"},
		{name: "the pool has closed", pool: func(p *pool) { p.worker(0, echo); p.table.SetClosed() },
			status: -2, want: NotRun, words: "closed"},
		{name: "arguments that cannot be encoded", pool: handles(echo),
			call: func(call *Call) {
				call.Payload = func([]byte, *codec.Lent) ([]byte, error) { return nil, errors.New("a channel cannot travel") }
			}, status: -5, want: NotRun, words: "a channel cannot travel"},
		{name: "a frame over the limit", pool: handles(echo),
			call: func(call *Call) { call.Payload = text(big + big) }, status: -8, want: NotRun, words: "limit is 65536"},
		{name: "the socket file is missing", pool: func(p *pool) { p.row(0, 1) },
			status: -7, want: NotRun, words: "cannot be reached"},
		{name: "no greeting in time", pool: func(p *pool) { p.listen(0); p.row(0, 1) }, call: endsSoon,
			status: -7, want: NotRun, words: "before a worker was reached"},
		{name: "the first response is not a greeting", pool: func(p *pool) {
			p.raw(0, func(c *fakeConn) error { return c.refuse(1, -4, "") })
		}, status: -7, want: NotRun, words: "is not a greeting"},
	})
}

func TestFailuresWhileTheFrameIsWritten(t *testing.T) {
	t.Parallel()
	mayHaveRun := MayHaveRun
	runFailures(t, []failureCase{
		{name: "the frame does not fit the socket in time", pool: takesLargeFrames(waitForHangUp),
			call:   func(call *Call) { sendsFiftyBig(call); endsSoon(call) },
			status: -7, want: NotRun, words: "before worker 0"},
		{name: "the worker refuses the frame by its header", pool: takesLargeFrames(refusesByHeader),
			call: sendsFiftyBig, status: -8, want: NotRun, words: "over my limit"},
		{name: "the worker dies with the frame read in part", pool: takesLargeFrames(readsHundredBytes),
			call: sendsFiftyBig, status: -7, want: NotRun, words: "was lost"},
		{name: "the frame is over the worker's own limit", pool: func(p *pool) {
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.MaxPackageSize = 512
				return c.write(protocol.AppendGreeting(nil, g))
			})
		}, call: func(call *Call) { call.Payload = text(big) }, status: -8, want: NotRun, words: "limit is 512"},
		{name: "the worker dies with the frame unread", pool: func(p *pool) { p.raw(0, unreadThenClosed) },
			status: -7, want: NotRun, shared: &mayHaveRun, words: "worker 0 (pid 1001) was lost"},
	})
}

func TestFailuresThatAWorkerAnswers(t *testing.T) {
	t.Parallel()
	runFailures(t, []failureCase{
		{name: "-2", pool: answers(-2, "full"), status: -2, want: NotRun, words: "full"},
		{name: "-3", pool: answers(-3, "cut short"), status: -3, want: NotRun, words: "cut short"},
		{name: "-3 without an id", pool: handles(
			func(c *fakeConn, _ protocol.Package) error { return c.refuse(0, -3, "garbage") },
		), status: -3, want: NotRun, exclusive: true, words: "garbage"},
		{name: "-4", pool: answers(-4, "unknown task"), status: -4, want: NotRun, words: "unknown task"},
		{name: "-5", pool: answers(-5, "divided by zero"), status: -5, want: Ran, words: "divided by zero"},
		{name: "-5 by the hard limit", pool: answers(-5, "time limit of 1s"), status: -5, want: MayHaveRun,
			words: "time limit"},
		{name: "-6", pool: answers(-6, "expired"), status: -6, want: NotRun, words: "expired"},
		{name: "-8", pool: answers(-8, "too large"), status: -8, want: NotRun, words: "too large"},
		{name: "-9", pool: answers(-9, "result too large"), status: -9, want: Ran, words: "result too large"},
	})
}

func TestLossesAfterTheFrameWasRead(t *testing.T) {
	t.Parallel()
	runFailures(t, []failureCase{
		{name: "the worker dies with the frame read", pool: handles(hangUp),
			status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows of an earlier call only", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error {
				if c.packages.Load() > 1 {
					c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
					return errHangUp
				}
				c.row.ConnRead(c.place, pkg.ID)
				return echo(c, pkg)
			},
		), before: 1, status: -7, want: NotRun, words: "was lost"},
		{name: "the worker has said why it will be ended_Found22", pool: func(p *pool) {
			p.client.cfg.Describe = func(e sharedstate.End) string { return string(e.Reason) }
			p.worker(0, func(c *fakeConn, _ protocol.Package) error {
				c.row.SetCause(tasktype.ReasonHardLimit)
				return errHangUp
			})
		}, status: -7, want: MayHaveRun, words: "was lost: hard_limit"},
		{name: "so does the row of a worker that lives and lost the connection", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error {
				if c.packages.Load() > 1 {
					return errHangUp
				}
				c.row.ConnRead(c.place, pkg.ID)
				return echo(c, pkg)
			},
		), before: 1, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows of this call", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error {
				c.row.ConnRead(c.place, pkg.ID)
				if c.packages.Load() > 1 {
					return errHangUp
				}
				return echo(c, pkg)
			},
		), before: 1, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows that its turn had not come", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error {
				c.row.Record(1, pkg.ID, "t", sys.Now())
				c.row.ConnRead(c.place, pkg.ID)
				c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
				return errHangUp
			},
		), status: -7, want: NotRun, words: "was lost"},
		{name: "the worker's row knows that it had begun", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error {
				c.row.Begin(c.row.Record(1, pkg.ID, "t", sys.Now()))
				c.row.ConnRead(c.place, pkg.ID)
				c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
				return errHangUp
			},
		), status: -7, want: MayHaveRun, words: "was lost"},
		{name: "a notice of an earlier call, then the end", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error { _ = c.drain(pkg.ID - 1); return errHangUp },
		), status: -7, want: NotRun, words: "was lost"},
		{name: "a notice of this call, then the end", pool: handles(
			func(c *fakeConn, pkg protocol.Package) error { _ = c.drain(pkg.ID); return errHangUp },
		), status: -7, want: MayHaveRun, words: "was lost"},
		{name: "no answer in time", pool: handles(silent), call: endsSoon,
			status: -7, want: MayHaveRun, words: "had not answered"},
		{name: "a malformed answer", pool: handles(
			func(c *fakeConn, _ protocol.Package) error { return c.write([]byte{0, 0, 0, 1, 0xc1}) },
		), status: -7, want: MayHaveRun, words: "was lost"},
	})
}
