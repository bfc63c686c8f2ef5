package codec

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"unsafe"

	"github.com/taskd-go/task/internal/raw"
)

// Most tasks and results are structs of numbers, strings and bytes, or one of these. This file
// encodes them as the library would, in a third of the time.

// isPlain reports whether appendPlain can encode all values of the type.
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

// isFlat reports whether each value of the struct type t has the same fields in msgpack: the tags
// have at most a name, or are "-".
func isFlat(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous || strings.ContainsAny(f.Tag.Get("msgpack"), ",:'\\") {
			return false
		}
	}
	return true
}

// appendPlain appends v, and puts large memory into lent. ok is false, and nothing is appended, if
// v is not plain.
func appendPlain(dst []byte, v any, lent *Lent) (out []byte, ok bool) {
	if v == nil {
		return append(dst, raw.CodeNil), true
	}
	value := reflect.ValueOf(v)
	p := planOf(value.Type())
	if !p.plain || p.err != nil {
		return dst, false
	}
	return p.append(dst, value, lent), true
}

// append appends v, whose type is plain.
func (p *plan) append(dst []byte, v reflect.Value, lent *Lent) []byte {
	switch p.kind {
	case reflect.Bool:
		return raw.AppendBool(dst, v.Bool())
	case reflect.String:
		if lent.takes(v.Len()) {
			return lent.add(raw.AppendStrHead(dst, v.Len()), unsafe.Slice(unsafe.StringData(v.String()), v.Len()))
		}
		return raw.AppendStr(dst, v.String())
	case reflect.Float32:
		return binary.BigEndian.AppendUint32(append(dst, 0xca), math.Float32bits(float32(v.Float())))
	case reflect.Float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v.Float()))
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, raw.CodeNil)
		}
		if lent.takes(v.Len()) {
			return lent.add(raw.AppendBinHead(dst, v.Len()), v.Bytes())
		}
		return raw.AppendBin(dst, v.Bytes())
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, raw.CodeNil)
		}
		return p.elem.append(dst, v.Elem(), lent)
	case reflect.Struct:
		dst = raw.AppendMapHead(dst, len(p.list))
		for _, f := range p.list {
			dst = raw.AppendStr(dst, f.name)
			dst = f.plan.append(dst, v.Field(f.index[0]), lent)
		}
		return dst
	}
	if v.CanInt() {
		return raw.AppendInt(dst, v.Int())
	}
	return raw.AppendUint(dst, v.Uint())
}
