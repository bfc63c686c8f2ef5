package codec

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"

	"github.com/taskd-go/task/internal/raw"
)

// Most tasks and results are structs of numbers, strings and bytes, or one of these. They are
// written here, as the library would write them, in a third of the time that it takes.

// plainLimit is how long, in bytes, a string or []byte of a plain value may be.
const plainLimit = 16 << 10

// isPlain says whether a value of the plan's type is plain, as far as the type can tell.
func (p *plan) isPlain() bool {
	if p.encodes || p.open {
		return false
	}
	switch p.kind {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Slice:
		return p.elem.kind == reflect.Uint8
	case reflect.Pointer:
		return p.elem.plain
	case reflect.Struct:
		for _, f := range p.list {
			if !f.plan.plain {
				return false
			}
		}
		return isFlat(p.typ)
	}
	return false
}

// isFlat says whether all fields of a struct are written, whatever they hold: the tags say no more than a name, or "-".
func isFlat(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous || strings.ContainsAny(f.Tag.Get("msgpack"), ",:'\\") {
			return false
		}
	}
	return true
}

// appendPlain appends v; ok is false, and nothing appended, when v is not plain.
func appendPlain(dst []byte, v any) (out []byte, ok bool) {
	if v == nil {
		return append(dst, raw.CodeNil), true
	}
	value := reflect.ValueOf(v)
	p := planOf(value.Type())
	if !p.plain || p.err != nil {
		return dst, false
	}
	if out, ok = p.append(dst, value); !ok {
		return dst, false
	}
	return out, true
}

// append appends v, whose type is plain; ok is false for one that is too long.
func (p *plan) append(dst []byte, v reflect.Value) (out []byte, ok bool) {
	switch p.kind {
	case reflect.Bool:
		return raw.AppendBool(dst, v.Bool()), true
	case reflect.String:
		return raw.AppendStr(dst, v.String()), v.Len() < plainLimit
	case reflect.Float32:
		return binary.BigEndian.AppendUint32(append(dst, 0xca), math.Float32bits(float32(v.Float()))), true
	case reflect.Float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v.Float())), true
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, raw.CodeNil), true
		}
		return raw.AppendBin(dst, v.Bytes()), v.Len() < plainLimit
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, raw.CodeNil), true
		}
		return p.elem.append(dst, v.Elem())
	case reflect.Struct:
		dst = raw.AppendMapHead(dst, len(p.list))
		for _, f := range p.list {
			dst = raw.AppendStr(dst, f.name)
			if dst, ok = f.plan.append(dst, v.Field(f.index[0])); !ok {
				return dst, false
			}
		}
		return dst, true
	}
	if v.CanInt() {
		return raw.AppendInt(dst, v.Int()), true
	}
	return raw.AppendUint(dst, v.Uint()), true
}
