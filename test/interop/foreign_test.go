package interop

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/ugorji/go/codec"
	"golang.org/x/sys/unix"
)

// waitLimit bounds every wait for an answer that is certain to come.
const waitLimit = time.Minute

// handle is the other library's: its own choice of encodings.
func handle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	return h
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	var b []byte
	require.NoError(t, codec.NewEncoderBytes(&b, handle()).Encode(v))
	return b
}

func unpack(t testing.TB, b []byte) []any {
	t.Helper()
	var elements []any
	d := codec.NewDecoderBytes(b, handle())
	require.NoError(t, d.Decode(&elements))
	require.Equal(t, len(b), d.NumBytesRead())
	return elements
}

// number reads an integer of whatever type the library chose.
func number(t testing.TB, v any) int64 {
	t.Helper()
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return n.Int()
	case n.CanUint():
		return int64(n.Uint())
	}
	require.Failf(t, "no integer", "%T %v", v, v)
	return 0
}

// An answer is a response as a client of another language sees it.
type answer struct {
	ID     int64
	OK     bool
	Status int64
	Data   any
	TaskID int64
}

func readAnswer(t testing.TB, body []byte) answer {
	t.Helper()
	e := unpack(t, body)
	require.GreaterOrEqual(t, len(e), 5)
	require.Equal(t, int64(1), number(t, e[0]), "version")
	a := answer{ID: number(t, e[1]), OK: e[2].(bool), Status: number(t, e[3]), Data: e[4]}
	if len(e) > 5 {
		a.TaskID = number(t, e[5])
	}
	return a
}

// A foreign client knows the protocol's document and nothing else.
type foreign struct {
	t    testing.TB
	conn *net.UnixConn
	pid  int64
	max  int64
}

// dial connects and reads the greeting.
func dial(t testing.TB, path string) *foreign {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(waitLimit)))
	f := &foreign{t: t, conn: conn.(*net.UnixConn)}
	hello := f.receive()
	require.Zero(t, hello.ID)
	require.True(t, hello.OK)
	data := hello.Data.([]any)
	require.GreaterOrEqual(t, len(data), 4)
	f.pid, f.max = number(t, data[2]), number(t, data[3])
	return f
}

func (f *foreign) write(b []byte) {
	f.t.Helper()
	_, err := f.conn.Write(b)
	require.NoError(f.t, err)
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// send writes one package of these elements.
func (f *foreign) send(elements ...any) {
	f.t.Helper()
	f.write(frame(pack(f.t, elements)))
}

// call sends a sync package without a deadline.
func (f *foreign) call(id uint64, task string, args map[string]any) {
	f.t.Helper()
	f.send(1, 2, id, 0, task, args)
}

func (f *foreign) receive() answer {
	f.t.Helper()
	var head [4]byte
	_, err := io.ReadFull(f.conn, head[:])
	require.NoError(f.t, err)
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err = io.ReadFull(f.conn, body)
	require.NoError(f.t, err)
	return readAnswer(f.t, body)
}

// closed waits for the worker to close the connection.
func (f *foreign) closed() {
	f.t.Helper()
	n, err := f.conn.Read(make([]byte, 1))
	require.Zero(f.t, n)
	if !errors.Is(err, unix.ECONNRESET) {
		require.Equal(f.t, io.EOF, err)
	}
}

// monotonic is the clock of package deadlines.
func monotonic(t testing.TB) int64 {
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano()
}
