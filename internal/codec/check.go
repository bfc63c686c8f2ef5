package codec

import (
	"errors"
	"fmt"
	"reflect"
)

// Check returns an error if a value of type t cannot be encoded, or only as an empty map because
// none of its fields is exported. An empty struct and a type with an encoder of its own pass.
func Check(t reflect.Type) error {
	for t.Kind() == reflect.Pointer && t.Elem() != t {
		t = t.Elem()
	}
	p := planOf(t)
	switch {
	case p.err != nil:
		return p.err
	case p.encodes:
		return nil
	}
	switch p.kind {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Errorf("msgpack has no %s", p.kind)
	case reflect.Struct:
		if len(p.list) == 0 && hidesFields(t) {
			return errors.New("none of its fields is exported, so that none would travel")
		}
	}
	return nil
}

// hidesFields reports whether the struct type t has fields that are left out only because they are
// not exported.
func hidesFields(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _ := parseTag(f.Tag.Get("msgpack"))
		if !f.IsExported() && !f.Anonymous && f.Name != "_" && name != "-" {
			return true
		}
	}
	return false
}
