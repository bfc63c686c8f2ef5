package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

// Append appends v as one msgpack value: structs as maps by field name (msgpack
// tags count), integers in their shortest form. It fails, and returns dst as it was, for a value
// that msgpack does not have (a channel, a function), that refers to itself or nests
// deeper than protocol.MaxDepth, and when an encoder of the value's own fails, panics or writes
// something else than one value. It is safe for concurrent use.
func Append(dst []byte, v any) (out []byte, err error) { return AppendLending(dst, v, nil) }

// AppendLending is Append, but leaves out the bytes of a []byte or string of 16 KiB or more that is
// v, or a field of v, and puts them into lent: the caller writes both. Their places count
// from dst's first byte. A v that is more than numbers, strings and bytes is copied all the same; so is all with a nil lent.
func AppendLending(dst []byte, v any, lent *Lent) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = dst, fmt.Errorf("encode %T: panic: %v", v, p)
		}
	}()
	if out, ok := appendPlain(dst, v, lent); ok {
		return out, nil
	}
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
			return dst, fmt.Errorf("encode %T: what its own encoder wrote %w", v, err)
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
	end, fault := raw.Walk(b, 0, raw.MaxDepth)
	switch {
	case fault != raw.Sound:
		return errors.New(fault.String())
	case end < len(b):
		return fmt.Errorf("is %d bytes longer than one value", len(b)-end)
	}
	return nil
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
	own, err = p.deep(value, raw.MaxDepth, maxHops)
	if err != nil || !own || value.Kind() == reflect.Pointer {
		return rv, own, err
	}
	rv = reflect.New(value.Type()).Elem()
	rv.Set(value)
	return rv, own, nil
}

var errTooDeep = errors.New("the value nests too deep, or holds itself")

// maxHops is how many pointers and interfaces may stand between two levels of a value.
const maxHops = 16

// deep fails when v nests deeper than levels, and says whether an encoder
// of a value's own was met.
func (p *plan) deep(v reflect.Value, levels, hops int) (own bool, err error) {
	switch {
	case p.encodes:
		return p.own, nil
	case !p.open && !p.own:
		return false, nil
	case p.kind == reflect.Pointer || p.kind == reflect.Interface:
		if v.IsNil() {
			return false, nil
		}
		if hops == 0 {
			return false, errTooDeep
		}
		next := p.elem
		if p.kind == reflect.Interface {
			if next = planOf(v.Elem().Type()); next.err != nil {
				return false, next.err
			}
		}
		return next.deep(v.Elem(), levels, hops-1)
	case (p.kind == reflect.Slice || p.kind == reflect.Map) && v.IsNil():
		return false, nil
	case levels == 0:
		return false, errTooDeep
	}
	for part, pp := range p.partsOf(v) {
		met, err := pp.deep(part, levels-1, maxHops)
		if err != nil {
			return false, err
		}
		own = own || met
	}
	return own, nil
}

// partsOf iterates over what a value with open parts is made of.
func (p *plan) partsOf(v reflect.Value) func(func(reflect.Value, *plan) bool) {
	return func(yield func(reflect.Value, *plan) bool) {
		switch p.kind {
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				if !yield(v.Index(i), p.elem) {
					return
				}
			}
		case reflect.Map:
			for it := v.MapRange(); it.Next(); {
				if !yield(it.Key(), p.key) || !yield(it.Value(), p.elem) {
					return
				}
			}
		case reflect.Struct:
			for _, f := range p.list {
				if part, err := v.FieldByIndexErr(f.index); err == nil && !yield(part, f.plan) {
					return
				}
			}
		}
	}
}
