package protocol

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/vmihailenco/msgpack/v5"
)

func seed(f *testing.F) {
	for _, b := range [][]byte{
		nil, {0xc1}, {0xdd, 4, 0, 0, 0}, {0xdf, 4, 0, 0, 0}, nested(64), nested(65), {0xc7, 0, 5},
		appendPackage(nil, &Package{Type: Sync, ID: 1, Task: []byte("t"), Payload: []byte{0xc0},
			Meta: map[string]string{"k": "v"}, Soft: 1, Hard: 2}),
		marshal(f, with(6, map[string]string{"a": "b"})),
		AppendResponse(nil, &Response{ID: 1, OK: true, Data: []byte{0x91, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0}}),
		AppendGreeting(nil, Greeting{1, 2, 3, 4}), AppendNotice(nil, 7),
		{0, 0, 0, 0}, {0, 0, 0, 3, 1}, {0xff, 0xff, 0xff, 0xff},
	} {
		f.Add(b)
	}
}

// cheap calls decode and fails if that allocates more than four times the size of b and a constant.
func cheap(t *testing.T, b []byte, decode func()) {
	t.Helper()
	if cost := allocated(decode); cost > uint64(4*len(b)+firstStep+slack) {
		t.Fatalf("%d bytes of input cost %d bytes of memory", len(b), cost)
	}
}

// The msgpack library reads what passes Check, in as many bytes.
func FuzzCheck(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var n int
		var err error
		cheap(t, b, func() { n, err = Check(b) })
		if err != nil {
			assert.ErrorIs(t, err, StatusIllegal)
			return
		}
		rest := bytes.NewReader(b)
		assert.NoError(t, msgpack.NewDecoder(rest).Skip())
		assert.Equal(t, n, len(b)-rest.Len())
		var v any
		// The library fails for extensions without a decoder and for keys that are not strings.
		_ = msgpack.Unmarshal(b[:n], &v)
	})
}

func FuzzParsePackage(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Package
		var err error
		cheap(t, b, func() { p, err = ParsePackage(b) })
		long, longErr := parsePackage(b)
		assert.Equal(t, longErr, err)
		assert.Equal(t, long, p)
		if err != nil {
			assert.ErrorIs(t, err, StatusIllegal)
			return
		}
		assert.NotZero(t, p.ID)
		again, err := ParsePackage(appendPackage(nil, &p))
		assert.NoError(t, err)
		assert.Equal(t, p, again)
	})
}

func FuzzParseResponse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Response
		var err error
		cheap(t, b, func() { r, err = ParseResponse(b) })
		long, longErr := parseResponse(b)
		assert.Equal(t, longErr, err)
		assert.Equal(t, long, r)
		if err != nil {
			assert.ErrorIs(t, err, StatusProtocol)
			return
		}
		_, greeting := ParseGreeting(&r)
		_, notice := ParseNotice(&r)
		assert.False(t, greeting && notice)
		_ = r.Text()
		again, err := ParseResponse(AppendResponse(nil, &r))
		assert.NoError(t, err)
		assert.Equal(t, r, again)
	})
}

// A stream is cut into the same frames however it arrives.
func FuzzReader(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		cheap(t, b, func() { _, _ = readAll(bytes.NewReader(b)) })
		whole, errWhole := readAll(bytes.NewReader(b))
		pieced, errPieced := readAll(&pieces{src: bytes.NewReader(b), n: 3})
		assert.Equal(t, whole, pieced)
		assert.Equal(t, errWhole, errPieced)
	})
}

// readAll returns how many frames r holds, all their bodies, and what ended it.
func readAll(src io.Reader) (joined string, end error) {
	r := NewReader(src, DefaultPackageSize)
	var all bytes.Buffer
	for {
		body, _, err := r.Next()
		if err != nil {
			var e *Error
			if err != io.EOF && !errors.As(err, &e) {
				panic(err)
			}
			return all.String(), err
		}
		all.Write(body)
	}
}
