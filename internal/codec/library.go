package codec

import (
	"bytes"
	"errors"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

// keptSize is the size of a value above which the buffers that served it are let go.
const keptSize = 64 << 10

// A library is the msgpack library's decoder with what it reads from.
type library struct {
	dec *msgpack.Decoder
	src source
}

var libraries = sync.Pool{New: func() any { return &library{dec: msgpack.NewDecoder(nil)} }}

// byLibrary has the next value read by the library: it knows time and the
// extensions, and calls what decoder a type has of its own.
func (d *decoder) byLibrary(v any) error {
	end, _ := raw.Walk(d.b, d.at, raw.MaxDepth)
	value := d.b[d.at:end]
	d.at = end
	l := libraries.Get().(*library)
	l.src.reset(value)
	l.dec.Reset(&l.src)
	// The walk has seen that every length is true.
	l.dec.DisableAllocLimit(true)
	err := l.dec.Decode(v)
	l.src.reset(nil)
	if len(value) <= keptSize {
		libraries.Put(l)
	}
	return err
}

// A source is the one value that the library reads. The library looks for a map's length inside
// an extension, where the walk has checked nothing and a claim could be of any size. It reads codes and
// lengths byte by byte, an extension's content never: so a source refuses that.
type source struct {
	bytes.Reader
	size int
	exts [][2]int // where the contents of extensions begin and end, in order
	next int      // index in exts of the first that is not behind the source
}

func (s *source) reset(b []byte) {
	s.Reader.Reset(b)
	s.size = len(b)
	s.exts, s.next = s.exts[:0], 0
	for i := 0; i < len(b); {
		t, next := raw.Next(b, i)
		if t.Kind == raw.Ext {
			s.exts = append(s.exts, [2]int{next - t.Len, next})
		}
		i = next
	}
}

var errInsideExt = errors.New("an extension is not a map")

func (s *source) ReadByte() (byte, error) {
	at := s.size - s.Len()
	for s.next < len(s.exts) && s.exts[s.next][1] <= at {
		s.next++
	}
	if s.next < len(s.exts) && s.exts[s.next][0] <= at {
		return 0, errInsideExt
	}
	return s.Reader.ReadByte()
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
