package codec

import (
	"errors"
	"fmt"
	"reflect"
)

// Check says why nothing of a value of type t would travel; nil when something can. An empty struct
// is fine, and so is a type with an encoder of its own.
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

// hidesFields says whether the struct type t has fields that are left out for want of a capital letter alone.
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
