package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

// Append appends v as one msgpack value. It encodes structs as maps by field name, with regard to
// msgpack tags, and integers in their shortest form. It fails, and returns dst unchanged, if
// msgpack has no such value (a channel, a function), if v refers to itself or nests deeper than
// protocol.MaxDepth, and if an encoder of the value's own fails, panics or writes anything but one
// value. It is safe for concurrent use.
func Append(dst []byte, v any) (out []byte, err error) { return AppendLending(dst, v, nil) }

// AppendLending is like Append, but does not copy a []byte or string of Large bytes or more that is
// v or a field of v. It puts such memory into lent, with its place counted from the first byte of
// dst, and the caller writes both. It copies everything if lent is nil, or if v has other parts
// than numbers, strings and bytes.
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

// checkOne checks that b, which a foreign encoder wrote, is one value.
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

// encodable returns an error for a value that refers to itself, which would overflow the library's
// stack. own reports whether the value has encoders of its own. Such an encoder may have a pointer
// receiver, so rv, if valid, is an addressable copy to encode instead of v.
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

// maxHops is how many pointers and interfaces may lie between two levels of a value.
const maxHops = 16

// deep fails if v nests deeper than levels. own reports whether a value in v has an encoder of its
// own.
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

// partsOf iterates over the elements, pairs or fields of v.
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
