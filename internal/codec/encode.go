package codec

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/protocol"
)

// keptSize is the size of a value above which the buffers that served it are let go.
const keptSize = 64 << 10

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

// Append appends v as one msgpack value: structs as maps by field name (msgpack
// tags count), integers in their shortest form. It fails, and returns dst as it was, for a value
// that msgpack does not have (a channel, a function), that refers to itself or nests
// deeper than protocol.MaxDepth, and when an encoder of the value's own fails, panics or writes
// something else than one value. It is safe for concurrent use.
func Append(dst []byte, v any) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = dst, fmt.Errorf("encode %T: panic: %v", v, p)
		}
	}()
	rv, own, err := encodable(v)
	if err != nil {
		return dst, fmt.Errorf("encode %T: %w", v, err)
	}
	e := encoders.Get().(*encoder)
	e.dst = dst
	e.enc.Reset(e)
	e.enc.UseCompactInts(true)
	err = encodeInto(e.enc, v, rv)
	out, e.dst = e.dst, nil
	if len(out)-len(dst) <= keptSize {
		encoders.Put(e)
	}
	if err != nil {
		return dst, fmt.Errorf("encode %T: %w", v, err)
	}
	if own {
		if err := checkOne(out[len(dst):]); err != nil {
			return dst, fmt.Errorf("encode %T: its own encoder wrote no msgpack value: %w", v, err)
		}
	}
	return out, nil
}

func encodeInto(enc *msgpack.Encoder, v any, rv reflect.Value) error {
	if rv.IsValid() {
		return enc.EncodeValue(rv)
	}
	return enc.Encode(v)
}

// checkOne checks what came from an encoder that is not the library's.
func checkOne(b []byte) error {
	n, err := protocol.Check(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d bytes follow the value", len(b)-n)
	}
	return err
}

// encodable looks for what the library would not survive: a value that refers
// to itself. own says that an encoder of the value's own takes part. Such an encoder may have a
// pointer receiver, so rv, when valid, is an addressable copy of v to encode instead of it.
func encodable(v any) (rv reflect.Value, own bool, err error) {
	if v == nil {
		return rv, false, nil
	}
	value := reflect.ValueOf(v)
	p := planOf(value.Type())
	if p.err != nil {
		return rv, false, p.err
	}
	if !p.open && !p.own {
		return rv, false, nil
	}
	own, err = p.deep(value, protocol.MaxDepth, maxHops)
	if err != nil || !own || value.Kind() == reflect.Pointer {
		return rv, own, err
	}
	rv = reflect.New(value.Type()).Elem()
	rv.Set(value)
	return rv, own, nil
}
