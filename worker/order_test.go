package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

func header(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// The checks of a package, in their order: what is refused, what that counts, and what becomes
// of the connection. Each case that breaks two rules gets the status of the earlier one.
func TestOrderOfChecks(t *testing.T) {
	for _, c := range slices.Concat(frameChecks, taskChecks, payloadChecks) {
		t.Run(c.name, c.run)
	}
}

// An orderCase is a frame with something wrong, often more than one thing, and the refusal of the first.
type orderCase struct {
	name    string
	before  func(*rig, *peer)
	send    func(*rig) []byte
	status  protocol.Status
	id      uint64
	count   count
	closed  bool
	blocked int // tasks that hold slots meanwhile
}

func (tt orderCase) run(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	if tt.before != nil {
		tt.before(r, p)
	}
	q := p
	if tt.blocked > 0 {
		q = r.dial()
	}
	q.raw(tt.send(r))
	got := q.next()
	assert.Equal(t, tt.status, got.Status, "status; %s", got.Text())
	assert.Equal(t, tt.id, got.ID, "whose response")
	assert.False(t, got.OK)
	assert.NotEmpty(t, got.Text(), "a refusal says why")
	for range tt.blocked {
		r.gate <- struct{}{}
		valueOf(t, p.next())
	}
	require.Equal(t, tt.count, r.still())
	if tt.closed {
		q.closed()
		return
	}
	q.id = 1000
	q.works()
}

// full takes all slots of the worker.
func full(r *rig, p *peer) {
	for range maxRunning {
		p.send(protocol.Package{Task: []byte("block")})
		r.awaitEntered()
	}
}

// frameChecks are about the frame and the package in it.
var frameChecks = []orderCase{
	{
		name:   "header over the limit, refused from the header alone",
		send:   func(*rig) []byte { return header(math.MaxInt32) },
		status: protocol.StatusPackageTooLarge, closed: true,
	},
	{
		name:   "body of 0 bytes",
		send:   func(*rig) []byte { return header(0) },
		status: protocol.StatusProtocol, closed: true,
	},
	{
		name:   "not well-formed",
		send:   func(*rig) []byte { return append(header(3), 'a', 'b', 0xc1) },
		status: protocol.StatusIllegal,
	},
	{
		name:   "5 bytes that claim 64 Mi elements",
		send:   func(*rig) []byte { return append(header(5), 0xdd, 4, 0, 0, 0) },
		status: protocol.StatusIllegal,
	},
	{
		name:   "nested deeper than allowed",
		send:   func(*rig) []byte { return append(header(200), bytes.Repeat([]byte{0x91}, 200)...) },
		status: protocol.StatusIllegal,
	},
	{
		name:   "another version",
		send:   func(*rig) []byte { f := frameOf(protocol.Package{ID: 100, Task: []byte("echo")}); f[5] = 9; return f },
		status: protocol.StatusIllegal, id: 100,
	},
	{
		name:   "another type",
		send:   func(*rig) []byte { return frameOf(protocol.Package{ID: 100, Type: 3, Task: []byte("echo")}) },
		status: protocol.StatusIllegal, id: 100,
	},
	{
		name:   "id 0",
		send:   func(*rig) []byte { return frameOf(protocol.Package{Task: []byte("echo")}) },
		status: protocol.StatusIllegal,
	},
}

// taskChecks are about the task, its deadline and the slot.
var taskChecks = []orderCase{
	{
		name:   "id that does not grow, of an unknown task",
		before: func(_ *rig, p *peer) { p.works() },
		send:   func(*rig) []byte { return frameOf(protocol.Package{ID: 1, Task: []byte("nobody")}) },
		status: protocol.StatusIllegal, id: 1, count: count{accepted: 1, success: 1}, closed: true,
	},
	{
		name: "unknown task, past its deadline",
		send: func(*rig) []byte {
			return frameOf(protocol.Package{ID: 100, Task: []byte("nobody"), Expire: sys.Now() - 1})
		},
		status: protocol.StatusIllegal, id: 100,
	},
	{
		name:   "past its deadline, no slot free",
		before: full, blocked: maxRunning,
		send: func(*rig) []byte {
			return frameOf(protocol.Package{ID: 100, Task: []byte("echo"), Expire: sys.Now() - 1})
		},
		status: protocol.StatusExpired, id: 100, count: count{accepted: maxRunning + 1, success: maxRunning, fail: 1, expired: 1},
	},
	{
		name:   "a deadline before the clock began",
		send:   func(*rig) []byte { return frameOf(protocol.Package{ID: 100, Task: []byte("echo"), Expire: -1}) },
		status: protocol.StatusExpired, id: 100, count: count{accepted: 1, fail: 1, expired: 1},
	},
	{
		name:   "no slot free, payload does not decode",
		before: full, blocked: maxRunning,
		send:   func(*rig) []byte { return frameOf(protocol.Package{ID: 100, Task: []byte("echo"), Payload: []byte{1}}) },
		status: protocol.StatusBusy, id: 100, count: count{accepted: maxRunning, success: maxRunning, busy: 1},
	},
}

// payloadChecks are about the arguments.
var payloadChecks = []orderCase{
	{
		name: "payload does not decode, the deadline passes meanwhile",
		send: func(r *rig) []byte {
			r.tasks["slow"] = func([]byte) (Task, error) { <-time.After(600 * time.Millisecond); return nil, errors.New("no") }
			return frameOf(
				protocol.Package{ID: 100, Task: []byte("slow"), Expire: sys.Now() + int64(500*time.Millisecond)},
			)
		},
		status: protocol.StatusIllegal, id: 100, count: count{accepted: 1, fail: 1},
	},
	{
		name: "the deadline passes while the payload decodes",
		send: func(r *rig) []byte {
			r.tasks["slow"] = func([]byte) (Task, error) {
				<-time.After(600 * time.Millisecond)
				return &testTask{run: nil}, nil // a run would panic
			}
			return frameOf(
				protocol.Package{ID: 100, Task: []byte("slow"), Expire: sys.Now() + int64(500*time.Millisecond)},
			)
		},
		status: protocol.StatusExpired, id: 100, count: count{accepted: 1, fail: 1, expired: 1},
	},
	{
		name: "decoder that panics",
		send: func(r *rig) []byte {
			r.tasks["bad"] = func([]byte) (Task, error) { panic("in the decoder") }
			return frameOf(protocol.Package{ID: 100, Task: []byte("bad")})
		},
		status: protocol.StatusIllegal, id: 100, count: count{accepted: 1, fail: 1},
	},
}

// A package that waits in the limit's exact size passes; one byte more does not.
func TestPackageOfTheExactLimit(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.MaxPackageSize = 512 })
	frame := func(size int) []byte {
		empty := len(
			frameOf(
				protocol.Package{
					ID:      1,
					Task:    []byte("fail"),
					Payload: protocol.AppendText(nil, string(make([]byte, 300))),
				},
			),
		)
		return frameOf(
			protocol.Package{
				ID:      1,
				Task:    []byte("fail"),
				Payload: protocol.AppendText(nil, string(make([]byte, 300+size-empty))),
			},
		)
	}
	require.Len(t, frame(512), 512)
	p := r.dial()
	p.raw(frame(512))
	require.Equal(t, protocol.StatusTaskError, p.next().Status)
	p = r.dial()
	p.raw(frame(513))
	require.Equal(t, protocol.StatusPackageTooLarge, p.next().Status)
	p.closed()
}

func TestRefusedIDsCountAsRead(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	require.Equal(t, protocol.StatusIllegal, p.call(protocol.Package{ID: 50, Task: []byte("nobody")}).Status)
	require.Equal(
		t,
		protocol.StatusIllegal,
		p.call(protocol.Package{ID: 50, Task: []byte("echo"), Payload: text("x")}).Status,
	)
	p.closed()
}

// A peer whose answer is pending when its connection is to be closed still gets it.
func TestFatalFrameKeepsPendingAnswers(t *testing.T) {
	for name, bad := range map[string][]byte{
		"too large":        header(math.MaxInt32),
		"empty":            header(0),
		"id does not grow": frameOf(protocol.Package{ID: 1, Task: []byte("echo")}),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.dial()
			id := p.send(protocol.Package{Task: []byte("block")})
			r.awaitEntered()
			p.raw(bad)
			require.False(t, p.next().OK)
			r.gate <- struct{}{}
			got := p.next()
			require.Equal(t, id, got.ID)
			require.Equal(t, "done", valueOf(t, got))
			p.closed()
		})
	}
}

// The writer of a frame that is far over the limit is not stuck in its write, and reads why.
func TestTooLargeFrameIsReadable(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	frame := append(header(8<<20), make([]byte, 8<<20)...)
	_, err := p.nc.Write(frame)
	require.Error(t, err, "a write after the worker has closed its reading side")
	require.Equal(t, protocol.StatusPackageTooLarge, p.next().Status)
	p.closed()
}

// goridge/RR socket factory: one bad hello ends the accept loop without end. Connect and send
// garbage / nothing 1,000 times: the next good call works at once.
func TestGarbageHellos_Row78(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.FrameTimeout = 100 * time.Millisecond })
	var silent []*peer
	for i := range 1000 {
		p := r.connect()
		switch i % 4 {
		case 0: // says nothing and stays
			silent = append(silent, p)
		case 1: // goes at once
			require.NoError(t, p.nc.Close())
		case 2: // goes in the middle of a frame
			_, _ = p.nc.Write([]byte{0, 0, 1})
			require.NoError(t, p.nc.Close())
		default:
			_, _ = p.nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			require.NoError(t, p.nc.Close())
		}
	}
	r.dial().works()
	for _, p := range silent {
		require.NoError(t, p.nc.Close())
	}
	r.still()
}

// celery #10462: a huge message's error blocks the whole pool. 2 MiB garbage frames: the worker
// stays healthy.
func TestGarbageFrames_Row70(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	garbage := [][]byte{
		bytes.Repeat([]byte{0x91}, protocol.DefaultPackageSize-4),
		bytes.Repeat([]byte{0xdd, 0xff}, (protocol.DefaultPackageSize-4)/2),
		bytes.Repeat([]byte{0xc1}, protocol.DefaultPackageSize-4),
		make([]byte, protocol.DefaultPackageSize-4),
	}
	for range 3 {
		for _, g := range garbage {
			p.raw(append(header(uint32(len(g))), g...))
			require.Equal(t, protocol.StatusIllegal, p.next().Status)
		}
	}
	p.works()
}

// A peer that trickles costs its own connection, after FrameTimeout, and no other.
func TestTricklingPeer(t *testing.T) {
	r := start(t, func(r *rig) { r.cfg.FrameTimeout = 50 * time.Millisecond })
	for name, part := range map[string]int{"in the header": 2, "in the body": 9} {
		t.Run(name, func(t *testing.T) {
			p := r.dial()
			p.raw(frameOf(protocol.Package{ID: 1, Task: []byte("echo"), Payload: text("x")})[:part])
			r.dial().works()
			got := p.next()
			require.Equal(t, protocol.StatusProtocol, got.Status)
			require.Contains(t, got.Text(), "50ms")
			p.closed()
		})
	}
	// Between frames a connection may idle for longer than that.
	p := r.dial()
	p.works()
	<-time.After(100 * time.Millisecond)
	p.works()
}

func TestHalfAFrameThenTheEnd(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.raw([]byte{0, 0, 0, 9, 0x96})
	require.NoError(t, p.nc.CloseWrite())
	require.Equal(t, protocol.StatusProtocol, p.next().Status)
	p.closed()
}

// vmihailenco/msgpack #401: a 5-byte input allocates gigabytes or panics. A header that claims
// 64 Mi elements and 1.9 MB of nested arrays get -4 and cost no more than four times the frame.
func TestHostileBodies_Row71(t *testing.T) {
	const size = 1900 << 10
	for name, body := range map[string][]byte{
		"5 bytes that claim 64 Mi elements": {0xdd, 4, 0, 0, 0},
		"5 bytes that claim 4 GiB of bytes": {0xc6, 0xff, 0xff, 0xff, 0xff},
		"1.9 MB of nested arrays":           bytes.Repeat([]byte{0x91}, size),
		"1.9 MB of nested maps":             bytes.Repeat([]byte{0x81, 0xc0}, size/2),
		"1.9 MB of claims":                  bytes.Repeat([]byte{0xdd, 0, 0x10, 0, 0}, size/5),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.dial()
			p.works()
			frame := append(header(uint32(len(body))), body...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p.raw(frame)
			require.Equal(t, protocol.StatusIllegal, p.next().Status)
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(frame)+64<<10))
			p.works()
		})
	}
}
