package codec

import (
	"fmt"
	"reflect"
	"strings"
)

// A field is a field of a struct under one of its names in msgpack.
type field struct {
	name  string
	index []int
	plan  *plan
}

// addFields adds the fields of t to p under the names that the library gives them. index leads from
// the struct of p to t, through the embedded types in path.
func (b *builder) addFields(p *plan, t reflect.Type, index []int, path []reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options := parseTag(sf.Tag.Get("msgpack"))
		if name == "-" || !sf.IsExported() && !sf.Anonymous {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if _, ok := options["intern"]; ok {
			b.err = fmt.Errorf("field %s of %s: the tag option intern is not supported", sf.Name, t)
			return
		}
		f := &field{name: name, index: append(index[:len(index):len(index)], i)}
		if sf.Anonymous {
			inlined, ok := b.embedded(p, sf.Type, options, f.index, path)
			if ok {
				p.add(inlined...)
				f.plan = b.plan(sf.Type)
				p.fields[name] = f
				continue
			}
		}
		f.plan = b.plan(sf.Type)
		p.add(f)
		if alias := options["alias"]; alias != "" {
			p.fields[alias] = f
		}
	}
}

func (p *plan) add(fs ...*field) {
	for _, f := range fs {
		p.list = append(p.list, f)
		p.fields[f.name] = f
	}
}

// embedded returns the fields of an embedded struct that become fields of p. If p already has a
// field of the same name, it hides all fields of the struct, or with the tag option inline only
// that one.
func (b *builder) embedded(p *plan, t reflect.Type, options map[string]string, index []int,
	path []reflect.Type) ([]*field, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, no := options["noinline"]
	_, always := options["inline"]
	if no || t.Kind() != reflect.Struct || !always && (hasEncoder(t) || hasDecoder(t)) {
		return nil, false
	}
	for _, outer := range append(path, p.typ) {
		if outer == t {
			b.err = fmt.Errorf("type %s embeds itself", t)
			return nil, false
		}
	}
	inner := &plan{typ: p.typ, fields: make(map[string]*field)}
	b.addFields(inner, t, index, append(path[:len(path):len(path)], t))
	var shown []*field
	for _, f := range inner.list {
		if p.fields[f.name] == nil {
			shown = append(shown, f)
		} else if !always {
			return nil, false
		}
	}
	return shown, true
}

// parseTag splits a tag into the name and the options. Only alias has a value.
func parseTag(tag string) (name string, options map[string]string) {
	name, rest, _ := strings.Cut(tag, ",")
	options = make(map[string]string)
	for option := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(option), ":")
		options[key] = value
	}
	return name, options
}
