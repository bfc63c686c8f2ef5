package worker

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/protocol"
)

// A peer is a client that speaks the protocol by hand.
type peer struct {
	t        testing.TB
	nc       *net.UnixConn
	in       *protocol.Reader
	greeting protocol.Greeting
	id       uint64
}

// dial connects and reads the greeting.
func (r *rig) dial() *peer {
	r.t.Helper()
	p := r.connect()
	p.greet()
	return p
}

func (r *rig) connect() *peer {
	r.t.Helper()
	nc, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path, Net: "unix"})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = nc.Close() })
	return &peer{t: r.t, nc: nc, in: protocol.NewReader(nc, 64<<20)}
}

func (p *peer) greet() {
	p.t.Helper()
	g := p.next()
	var ok bool
	p.greeting, ok = protocol.ParseGreeting(&g)
	require.True(p.t, ok, "the first response is no greeting: %+v", g)
}

func text(s string) []byte { return protocol.AppendText(nil, s) }

// frameOf builds a package; its defaults are a synchronous call with a payload of nil.
func frameOf(p protocol.Package) []byte {
	if p.Type == 0 {
		p.Type = protocol.Sync
	}
	if p.Payload == nil {
		p.Payload = []byte{0xc0}
	}
	f := protocol.AppendHead(protocol.BeginFrame(nil), &p)
	f = protocol.AppendTail(append(f, p.Payload...), &p)
	if err := protocol.EndFrame(f, 1<<30); err != nil {
		panic(err)
	}
	return f
}

// send writes packages in one write; those without an id get the next one. It returns the last
// id.
func (p *peer) send(ps ...protocol.Package) uint64 {
	p.t.Helper()
	var out []byte
	for _, pkg := range ps {
		if pkg.ID == 0 {
			p.id++
			pkg.ID = p.id
		}
		out = append(out, frameOf(pkg)...)
	}
	p.raw(out)
	return p.id
}

func (p *peer) raw(b []byte) {
	p.t.Helper()
	_, err := p.nc.Write(b)
	require.NoError(p.t, err)
}

// next reads one response.
func (p *peer) next() protocol.Response {
	p.t.Helper()
	r, err := p.read()
	require.NoError(p.t, err)
	return r
}

// said reads one response and returns its message.
func (p *peer) said() string {
	p.t.Helper()
	r := p.next()
	return r.Text()
}

func (p *peer) read() (protocol.Response, error) {
	if err := p.nc.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		return protocol.Response{}, err
	}
	body, _, err := p.in.Next()
	if err != nil {
		return protocol.Response{}, err
	}
	return protocol.ParseResponse(bytes.Clone(body))
}

// call sends one package and returns its response.
func (p *peer) call(pkg protocol.Package) protocol.Response {
	p.t.Helper()
	id := p.send(pkg)
	if pkg.ID != 0 {
		id = pkg.ID
	}
	r := p.next()
	require.Equal(p.t, id, r.ID, "whose response it is")
	return r
}

// value calls and returns what the task returned.
func (p *peer) value(pkg protocol.Package) any {
	p.t.Helper()
	return valueOf(p.t, p.call(pkg))
}

func valueOf(t testing.TB, r protocol.Response) any {
	t.Helper()
	require.True(t, r.OK, "status %d, %s", r.Status, r.Text())
	var v any
	require.NoError(t, msgpack.Unmarshal(r.Data, &v))
	return v
}

// works asserts that the connection still carries calls.
func (p *peer) works() {
	p.t.Helper()
	require.Equal(p.t, "still here", p.value(protocol.Package{Task: []byte("echo"), Payload: text("still here")}))
}

// closed asserts that the worker has closed the connection.
func (p *peer) closed() {
	p.t.Helper()
	r, err := p.read()
	require.ErrorIs(p.t, err, io.EOF, "read %+v", r)
}

// notice asserts that a drain notice comes.
// answer reads until the response with the id; a notice may come before it.
func (p *peer) answer(id uint64) protocol.Response {
	p.t.Helper()
	for {
		if r := p.next(); r.ID == id {
			return r
		}
	}
}

func (p *peer) notice(last uint64) {
	p.t.Helper()
	r := p.next()
	got, ok := protocol.ParseNotice(&r)
	require.True(p.t, ok, "no notice: %+v %s", r, r.Text())
	require.Equal(p.t, last, got, "the last id that was read")
}
