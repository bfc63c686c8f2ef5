package codec

import (
	"bytes"
	"errors"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

// keptSize is the largest size of a value, in bytes, after which its buffers are reused.
const keptSize = 64 << 10

// A library is a decoder of the msgpack library with its source.
type library struct {
	dec *msgpack.Decoder
	src source
}

var libraries = sync.Pool{New: func() any { return &library{dec: msgpack.NewDecoder(nil)} }}

// byLibrary decodes the next value with the library, which knows times and extensions and calls a
// type's own decoder.
func (d *decoder) byLibrary(v any) error {
	end, _ := raw.Walk(d.b, d.at, raw.MaxDepth)
	value := d.b[d.at:end]
	d.at = end
	l := libraries.Get().(*library)
	l.src.reset(value)
	l.dec.Reset(&l.src)
	// The walk has checked every length.
	l.dec.DisableAllocLimit(true)
	err := l.dec.Decode(v)
	l.src.reset(nil)
	if len(value) <= keptSize {
		libraries.Put(l)
	}
	return err
}

// A source is the one value that the library reads. The library may look for the length of a map
// within an extension, where the walk has checked nothing and the length may be anything. It reads
// codes and lengths byte by byte, but never the content of an extension. So a source fails a read
// of one byte there.
type source struct {
	bytes.Reader
	size int
	exts [][2]int // where the contents of the extensions begin and end, in order
	next int      // index in exts of the first that the source has not passed
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

// An encoder is an encoder of the library that appends to dst.
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
