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

// unproved stands for MayHaveRun, where the zero value means another thing.
const unproved Delivery = -1

// Each cell of: where a call failed × what is known of it.
func TestWhatACallerMayBelieve(t *testing.T) {
	big := strings.Repeat("x", testLimit-100)
	answer := func(s protocol.Status, message string) func(*pool) {
		return func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error { return c.refuse(pkg.ID, s, message) })
		}
	}
	short := func(call *Call) { call.Deadline = within(500 * time.Millisecond) }
	for _, tt := range []struct {
		name   string
		pool   func(p *pool)
		call   func(call *Call)
		before int // calls that succeed before
		status protocol.Status
		want   Delivery
		shared Delivery // on a shared connection, where it is not the same
		alone  bool     // cannot be on a shared connection
		words  string
	}{
		{name: "no worker accepts", pool: func(p *pool) { p.row(0, 1).SetAccepting(false) },
			status: -2, want: NotRun, words: "of 1 workers 0 are full and 1 do not accept"},
		{name: "the pool has closed", pool: func(p *pool) { p.worker(0, echo); p.table.SetClosed() },
			status: -2, want: NotRun, words: "closed"},
		{name: "arguments that cannot be encoded", pool: func(p *pool) { p.worker(0, echo) },
			call: func(call *Call) {
				call.Payload = func([]byte, *codec.Lent) ([]byte, error) { return nil, errors.New("a channel cannot travel") }
			}, status: -5, want: NotRun, words: "a channel cannot travel"},
		{name: "a frame over the limit", pool: func(p *pool) { p.worker(0, echo) },
			call: func(call *Call) { call.Payload = text(big + big) }, status: -8, want: NotRun, words: "limit is 65536"},
		{name: "the socket file is missing", pool: func(p *pool) { p.row(0, 1) },
			status: -7, want: NotRun, words: "cannot be reached"},
		{name: "no greeting in time", pool: func(p *pool) { p.listen(0); p.row(0, 1) }, call: short,
			status: -7, want: NotRun, words: "before a worker was reached"},
		{name: "the greeting is none", pool: func(p *pool) {
			p.raw(0, func(c *fakeConn) error { return c.refuse(1, -4, "") })
		}, status: -7, want: NotRun, words: "no greeting"},
		{name: "the frame does not fit the socket in time", pool: func(p *pool) {
			p.client.cfg.MaxPackageSize = 8 << 20
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.MaxPackageSize = 8 << 20
				if err := c.write(protocol.AppendGreeting(nil, g)); err != nil {
					return err
				}
				return waitForHangUp(c)
			})
		}, call: func(call *Call) {
			call.Payload = text(strings.Repeat(big, 50))
			call.Deadline = within(500 * time.Millisecond)
		},
			status: -7, want: NotRun, words: "before worker 0"},
		{name: "the worker refuses the frame by its header", pool: func(p *pool) {
			p.client.cfg.MaxPackageSize = 8 << 20
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.MaxPackageSize = 8 << 20
				if err := c.write(protocol.AppendGreeting(nil, g)); err != nil {
					return err
				}
				if _, err := io.ReadFull(c.conn, make([]byte, protocol.HeaderSize)); err != nil {
					return err
				}
				if err := c.refuse(0, protocol.StatusPackageTooLarge, "over my limit"); err != nil {
					return err
				}
				if err := sys.CloseRead(c.conn); err != nil {
					return err
				}
				return readUntilEOF(c) // without that the client sleeps in its write
			})
		}, call: func(call *Call) { call.Payload = text(strings.Repeat(big, 50)) },
			status: -8, want: NotRun, words: "over my limit"},
		{name: "the worker dies with the frame read in part", pool: func(p *pool) {
			p.client.cfg.MaxPackageSize = 8 << 20
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.MaxPackageSize = 8 << 20
				if err := c.write(protocol.AppendGreeting(nil, g)); err != nil {
					return err
				}
				_, err := io.ReadFull(c.conn, make([]byte, 100))
				return err
			})
		}, call: func(call *Call) { call.Payload = text(strings.Repeat(big, 50)) },
			status: -7, want: NotRun, words: "was lost"},
		{name: "the frame is over the worker's own limit", pool: func(p *pool) {
			p.raw(0, func(c *fakeConn) error {
				g := c.greeting()
				g.MaxPackageSize = 512
				return c.write(protocol.AppendGreeting(nil, g))
			})
		}, call: func(call *Call) { call.Payload = text(big) }, status: -8, want: NotRun, words: "limit is 512"},
		{name: "-2", pool: answer(-2, "full"), status: -2, want: NotRun, words: "full"},
		{name: "-3", pool: answer(-3, "cut short"), status: -3, want: NotRun, words: "cut short"},
		{name: "-3 without an id", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, _ protocol.Package) error { return c.refuse(0, -3, "garbage") })
		}, status: -3, want: NotRun, alone: true, words: "garbage"},
		{name: "-4", pool: answer(-4, "unknown task"), status: -4, want: NotRun, words: "unknown task"},
		{name: "-5", pool: answer(-5, "divided by zero"), status: -5, want: Ran, words: "divided by zero"},
		{name: "-5 by the hard limit", pool: answer(-5, "time limit of 1s"), status: -5, want: MayHaveRun, words: "time limit"},
		{name: "-6", pool: answer(-6, "expired"), status: -6, want: NotRun, words: "expired"},
		{name: "-8", pool: answer(-8, "too large"), status: -8, want: NotRun, words: "too large"},
		{name: "-9", pool: answer(-9, "result too large"), status: -9, want: Ran, words: "result too large"},
		{name: "the worker dies with the frame unread", pool: func(p *pool) {
			p.raw(0, unreadThenClosed)
		}, status: -7, want: NotRun, shared: unproved, words: "worker 0 (pid 1001) was lost"},
		{name: "the worker dies with the frame read", pool: func(p *pool) { p.worker(0, hangUp) },
			status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows of an earlier call only", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				if c.packages.Load() > 1 {
					c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
					return errHangUp
				}
				c.row.ConnRead(c.place, pkg.ID)
				return echo(c, pkg)
			})
		}, before: 1, status: -7, want: NotRun, words: "was lost"},
		{name: "so does the row of a worker that lives and lost the connection", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				if c.packages.Load() > 1 {
					return errHangUp
				}
				c.row.ConnRead(c.place, pkg.ID)
				return echo(c, pkg)
			})
		}, before: 1, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows of this call", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				c.row.ConnRead(c.place, pkg.ID)
				if c.packages.Load() > 1 {
					return errHangUp
				}
				return echo(c, pkg)
			})
		}, before: 1, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "the worker's row knows that its turn had not come", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				c.row.Record(1, pkg.ID, "t", sys.Now())
				c.row.ConnRead(c.place, pkg.ID)
				c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
				return errHangUp
			})
		}, status: -7, want: NotRun, words: "was lost"},
		{name: "the worker's row knows that it had begun", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error {
				c.row.Begin(c.row.Record(1, pkg.ID, "t", sys.Now()))
				c.row.ConnRead(c.place, pkg.ID)
				c.row.Finish(sharedstate.End{Reason: tasktype.ReasonKilled, Signal: 9})
				return errHangUp
			})
		}, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "a notice of an earlier call, then the end", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error { _ = c.drain(pkg.ID - 1); return errHangUp })
		}, status: -7, want: NotRun, words: "was lost"},
		{name: "a notice of this call, then the end", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, pkg protocol.Package) error { _ = c.drain(pkg.ID); return errHangUp })
		}, status: -7, want: MayHaveRun, words: "was lost"},
		{name: "no answer in time", pool: func(p *pool) { p.worker(0, silent) }, call: short,
			status: -7, want: MayHaveRun, words: "had not answered"},
		{name: "an answer that is none", pool: func(p *pool) {
			p.worker(0, func(c *fakeConn, _ protocol.Package) error { return c.write([]byte{0, 0, 0, 1, 0xc1}) })
		}, status: -7, want: MayHaveRun, words: "was lost"},
	} {
		check := func(t *testing.T, share bool, want Delivery) {
			p := newPool(t, 1, 16)
			tt.pool(p)
			if share {
				p.crowd()
			}
			for range tt.before {
				_, f := p.client.Do(t.Context(), syncCall(""))
				require.Nil(t, f)
			}
			call := syncCall("x")
			if tt.call != nil {
				tt.call(call)
			}
			_, f := p.client.Do(t.Context(), call)
			require.NotNil(t, f)
			require.Equal(t, tt.status, f.Status, f.Message)
			require.Equal(t, want, f.Delivery, f.Message)
			require.Contains(t, f.Message, tt.words)
			if p.table.Closed() {
				require.ErrorIs(t, f, ErrClosed)
			}
		}
		t.Run("own connection/"+tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, false, tt.want)
		})
		if tt.alone {
			continue
		}
		t.Run("shared connection/"+tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if tt.shared == unproved {
				want = MayHaveRun
			}
			check(t, true, want)
		})
	}
}
