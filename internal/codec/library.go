package codec

import (
	"bytes"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

// keptSize is the size of a value above which the buffers that served it are let go.
const keptSize = 64 << 10

// A library is the msgpack library's decoder with what it reads from.
type library struct {
	dec *msgpack.Decoder
	src bytes.Reader
}

var libraries = sync.Pool{New: func() any { return &library{dec: msgpack.NewDecoder(nil)} }}

// byLibrary has the next value read by the library: it knows time and the
// extensions, and calls what decoder a type has of its own.
func (d *decoder) byLibrary(v any) error {
	end, _ := raw.Walk(d.b, d.at, raw.MaxDepth)
	value := d.b[d.at:end]
	d.at = end
	l := libraries.Get().(*library)
	l.src.Reset(value)
	l.dec.Reset(&l.src)
	// The walk has seen that every length is true.
	l.dec.DisableAllocLimit(true)
	err := l.dec.Decode(v)
	l.src.Reset(nil)
	if len(value) <= keptSize {
		libraries.Put(l)
	}
	return err
}

// An encoder is the library's, writing behind what is there already.
type encoder struct {
	enc *msgpack.Encoder
	dst []byte
}

func (e *encoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

func (e *encoder) WriteByte(c byte) error {
	e.dst = append(e.dst, c)
	return nil
}

var encoders = sync.Pool{New: func() any { return &encoder{enc: msgpack.NewEncoder(nil)} }}
