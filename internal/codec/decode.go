package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/taskd-go/task/internal/raw"
)

// Decode decodes the one value in b into v, a non-nil pointer. b must have passed protocol.Check. A
// []byte of Large bytes or more shares the memory of b, which must not change afterwards.
//
// nil becomes the zero value. A number that does not fit the type is an error, and so is a value of
// another kind, with three exceptions: a string may become a []byte, bytes may become a string, and
// an integer may become a float that represents it exactly. A float64 is rounded to a float32.
// Decode ignores keys without a field; fields without a key keep their value. An interface receives
// what Value returns. A time.Time is the same instant in time.Local (the zero Time in UTC), without
// a monotonic reading.
//
// The error names the value, the type and the path to it; v may be partly filled then. A panic in a
// decoder of the type's own is an error. Decode is safe for concurrent use.
func Decode(b []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decode into %T: panic: %v", v, p)
		}
	}()
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fmt.Errorf("decode into %T: not a pointer that can be followed", v)
	}
	p := planOf(rv.Type().Elem())
	if p.err != nil {
		return fmt.Errorf("decode into %T: %w", v, p.err)
	}
	d := decoder{b: b}
	if err := d.value(p, rv.Elem()); err != nil {
		return fmt.Errorf("decode into %T: %w", v, err)
	}
	return d.end()
}

// Large is the size in bytes from which a []byte or string is not copied: encoding lends it, and
// decoding shares the memory of the frame.
const Large = 16 << 10

// A decoder reads b from the index at.
type decoder struct {
	b  []byte
	at int
}

func (d *decoder) end() error {
	if d.at < len(d.b) {
		return fmt.Errorf("decode: %d bytes follow the value", len(d.b)-d.at)
	}
	return nil
}

// value reads the next value into v, which can be set.
func (d *decoder) value(p *plan, v reflect.Value) error {
	t, next := raw.Next(d.b, d.at)
	switch {
	case t.Kind == raw.Cut || t.Kind == raw.Reserved:
		return errors.New("the bytes are not a msgpack value")
	case t.Kind == raw.Nil:
		d.at = next
		v.SetZero()
		return nil
	case p.kind == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(p.typ.Elem()))
		}
		return d.value(p.elem, v.Elem())
	case p.kind == reflect.Interface:
		return d.intoInterface(p, v)
	case p.decodes:
		return d.byLibrary(v.Addr().Interface())
	}
	d.at = next
	switch p.kind {
	case reflect.Slice, reflect.Array:
		return d.list(p, v, t)
	case reflect.Map:
		return d.mapping(p, v, t)
	case reflect.Struct:
		return d.structure(p, v, t)
	}
	if !setScalar(p.kind, v, t, d.b[:next]) {
		return d.misfit(t, p.typ)
	}
	return nil
}

// setScalar sets v to the token, whose bytes end b; ok is false if v cannot hold it.
func setScalar(k reflect.Kind, v reflect.Value, t raw.Token, b []byte) (ok bool) {
	switch k {
	case reflect.Bool:
		if ok = t.Kind == raw.Bool; ok {
			v.SetBool(t.Bits == 1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var n int64
		if n, ok = t.Int64(); ok && !v.OverflowInt(n) {
			v.SetInt(n)
		} else {
			ok = false
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if ok = t.Kind == raw.Uint && !v.OverflowUint(t.Bits); ok {
			v.SetUint(t.Bits)
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		if f, ok = asFloat(t, k == reflect.Float32); ok {
			v.SetFloat(f)
		}
	case reflect.String:
		if ok = t.Kind == raw.Str || t.Kind == raw.Bin; ok {
			v.SetString(string(b[len(b)-t.Len:]))
		}
	}
	return ok
}

// asFloat returns the number of t; ok is false if it overflows, or is an integer that a float
// cannot represent.
func asFloat(t raw.Token, narrow bool) (f float64, ok bool) {
	switch t.Kind {
	case raw.Float:
		f = math.Float64frombits(t.Bits)
		return f, !narrow || math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f) <= math.MaxFloat32
	case raw.Uint:
		f = float64(t.Bits)
		ok = f < 1<<64 && uint64(f) == t.Bits
	case raw.Int:
		f = float64(int64(t.Bits))
		ok = int64(f) == int64(t.Bits)
	}
	return f, ok && (!narrow || float64(float32(f)) == f)
}

// list reads the elements of an array, or bytes, into a slice or array.
func (d *decoder) list(p *plan, v reflect.Value, t raw.Token) error {
	isBytes := p.elem.kind == reflect.Uint8
	if isBytes && t.Kind != raw.Bin && t.Kind != raw.Str || !isBytes && t.Kind != raw.Array {
		return d.misfit(t, p.typ)
	}
	if p.kind == reflect.Array && t.Len > v.Len() {
		return fmt.Errorf("%d elements do not fit %s", t.Len, p.typ)
	}
	if isBytes && p.kind == reflect.Slice {
		data := d.b[d.at-t.Len : d.at : d.at]
		if t.Len < Large {
			data = bytes.Clone(data)
		}
		v.SetBytes(data)
		return nil
	}
	v.SetZero()
	if isBytes {
		copy(v.Bytes(), d.b[d.at-t.Len:d.at])
		return nil
	}
	if p.kind == reflect.Slice {
		makeSlice(v, t.Len)
	}
	for i := range t.Len {
		if err := d.value(p.elem, v.Index(i)); err != nil {
			return inside(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// makeSlice sets v, a nil slice, to a slice of n elements.
func makeSlice(v reflect.Value, n int) {
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return
	}
	v.Grow(n)
	v.SetLen(n)
}

// mapping reads the pairs of a map into v, which keeps its other pairs.
func (d *decoder) mapping(p *plan, v reflect.Value, t raw.Token) error {
	if t.Kind != raw.Map {
		return d.misfit(t, p.typ)
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(p.typ, t.Len))
	}
	key, elem := reflect.New(p.typ.Key()).Elem(), reflect.New(p.typ.Elem()).Elem()
	for range t.Len {
		key.SetZero()
		if err := d.value(p.key, key); err != nil {
			return inside("[key]", err)
		}
		if !key.Comparable() {
			return fmt.Errorf("%v cannot be a key of %s", key, p.typ)
		}
		elem.SetZero()
		if err := d.value(p.elem, elem); err != nil {
			return inside(fmt.Sprintf("[%v]", key), err)
		}
		v.SetMapIndex(key, elem)
	}
	return nil
}

// structure reads a map by field name, or an array with all fields in order.
func (d *decoder) structure(p *plan, v reflect.Value, t raw.Token) error {
	switch {
	case t.Kind == raw.Array && t.Len == len(p.list):
		for _, f := range p.list {
			if err := d.field(f, v); err != nil {
				return err
			}
		}
		return nil
	case t.Kind != raw.Map:
		return d.misfit(t, p.typ)
	}
	for range t.Len {
		name, next := raw.Next(d.b, d.at)
		if name.Kind != raw.Str && name.Kind != raw.Bin {
			return fmt.Errorf("a field of %s is named by %s, not by a string", p.typ, name.Kind)
		}
		d.at = next
		f := p.fields[string(d.b[next-name.Len:next])]
		if f == nil {
			d.at, _ = raw.Walk(d.b, d.at, raw.MaxDepth)
			continue
		}
		if err := d.field(f, v); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) field(f *field, v reflect.Value) error {
	for i, n := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return inside("."+f.name, fmt.Errorf("embedded pointer of type %s is not exported and nil", v.Type()))
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	// An unexported embedded struct cannot be set, but its exported fields can.
	if !v.CanSet() && (f.plan.kind != reflect.Struct || f.plan.decodes || d.b[d.at] == raw.CodeNil) {
		return inside("."+f.name, fmt.Errorf("field of type %s is not exported", v.Type()))
	}
	if err := d.value(f.plan, v); err != nil {
		return inside("."+f.name, err)
	}
	return nil
}

// intoInterface decodes into the target of a pointer in v, or sets v to the decoded value.
func (d *decoder) intoInterface(p *plan, v reflect.Value) error {
	if inner := v.Elem(); p.typ != errorType && inner.Kind() == reflect.Pointer && !inner.IsNil() {
		target := planOf(inner.Type())
		if target.err != nil {
			return target.err
		}
		return d.value(target, inner)
	}
	got, err := d.any()
	if err != nil {
		return err
	}
	if s, ok := got.(string); ok && p.typ == errorType {
		got = errors.New(s)
	}
	rv := reflect.ValueOf(got)
	if !rv.Type().AssignableTo(p.typ) {
		return fmt.Errorf("%s does not fit the interface %s", rv.Type(), p.typ)
	}
	v.Set(rv)
	return nil
}

// misfit returns the error for the value just read, which typ cannot hold.
func (d *decoder) misfit(t raw.Token, typ reflect.Type) error {
	switch t.Kind {
	case raw.Int:
		return fmt.Errorf("%d does not fit %s", int64(t.Bits), typ)
	case raw.Uint:
		return fmt.Errorf("%d does not fit %s", t.Bits, typ)
	case raw.Float:
		return fmt.Errorf("%v does not fit %s", math.Float64frombits(t.Bits), typ)
	case raw.Bool:
		return fmt.Errorf("%t does not fit %s", t.Bits == 1, typ)
	case raw.Str:
		return fmt.Errorf("%s %.40q does not fit %s", t.Kind, d.b[d.at-t.Len:d.at], typ)
	}
	return fmt.Errorf("%s of length %d does not fit %s", t.Kind, t.Len, typ)
}

// A located error has the path to its place in a value.
type located struct {
	path string
	err  error
}

func (l *located) Error() string { return strings.TrimPrefix(l.path, ".") + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// inside prepends step to the path of err.
func inside(step string, err error) error {
	if l, ok := err.(*located); ok {
		l.path = step + l.path
		return l
	}
	return &located{step, err}
}
