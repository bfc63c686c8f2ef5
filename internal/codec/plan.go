package codec

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// A plan is what is known of a Go type: how a value of it is decoded, and whether encoding one
// needs care.
type plan struct {
	typ       reflect.Type
	kind      reflect.Kind
	decodes   bool // it has a decoder of its own
	encodes   bool // it has an encoder of its own
	own       bool // it, or a type inside it, has one
	open      bool // its values may nest without bound: it holds an interface or itself
	key, elem *plan
	list      []*field // a struct's, in order
	fields    map[string]*field
	err       error // of a plan that planOf returns: why the library must not see the type
}

// A field of a struct, under a name that it has in msgpack.
type field struct {
	name  string
	index []int
	plan  *plan
}

// plans caches what planOf has found, by reflect.Type: it never changes an answer.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	b := builder{seen: make(map[reflect.Type]*plan), done: make(map[*plan]bool)}
	p := b.plan(t)
	p.err = b.err
	plans.Store(t, p)
	return p
}

// A builder makes the plans of one type and of all that it is made of.
type builder struct {
	seen map[reflect.Type]*plan
	done map[*plan]bool
	err  error
}

func (b *builder) plan(t reflect.Type) *plan {
	if p := b.seen[t]; p != nil {
		if !b.done[p] {
			p.open = true
		}
		return p
	}
	p := &plan{typ: t, kind: t.Kind()}
	b.seen[t] = p
	p.decodes, p.encodes = hasDecoder(t), hasEncoder(t)
	p.own = p.encodes && t != timeType
	p.open = p.kind == reflect.Interface
	if !p.encodes || !p.decodes {
		b.parts(p)
	}
	b.done[p] = true
	return p
}

// parts makes the plans of what p is made of.
func (b *builder) parts(p *plan) {
	switch p.kind {
	case reflect.Map:
		p.key = b.part(p, p.typ.Key())
		p.elem = b.part(p, p.typ.Elem())
	case reflect.Pointer:
		b.checkPointer(p.typ)
		p.elem = b.part(p, p.typ.Elem())
	case reflect.Slice, reflect.Array:
		p.elem = b.part(p, p.typ.Elem())
	case reflect.Struct:
		p.fields = make(map[string]*field)
		b.addFields(p, p.typ, nil, nil)
		for _, f := range p.list {
			p.own = p.own || f.plan.own
			p.open = p.open || f.plan.open
		}
	}
}

func (b *builder) part(p *plan, t reflect.Type) *plan {
	part := b.plan(t)
	p.own = p.own || part.own
	p.open = p.open || part.open
	return part
}

// checkPointer refuses a type that is a pointer to itself and nothing else.
func (b *builder) checkPointer(t reflect.Type) {
	first := t
	for t.Kind() == reflect.Pointer {
		if t = t.Elem(); t == first {
			b.err = fmt.Errorf("type %s points at nothing but itself", t)
			return
		}
	}
}

// addFields adds the fields of t to p under the names that the library gives
// them; index leads from p's struct to t, through the embedded types in path.
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

// embedded returns the fields of an embedded struct that count as p's own. Those that p has already
// hide the embedded ones: all of them, or with the tag option inline only themselves.
func (b *builder) embedded(p *plan, t reflect.Type, options map[string]string, index []int, path []reflect.Type) ([]*field, bool) {
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

// parseTag splits a tag into the name and the options, of which alias alone has a value.
func parseTag(tag string) (name string, options map[string]string) {
	name, rest, _ := strings.Cut(tag, ",")
	options = make(map[string]string)
	for option := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(option), ":")
		options[key] = value
	}
	return name, options
}

// The interfaces by which a type decodes or encodes itself, and the types that need more than their kind.
var (
	decoderTypes = []reflect.Type{
		reflect.TypeFor[msgpack.CustomDecoder](), reflect.TypeFor[msgpack.Unmarshaler](),
		reflect.TypeFor[encoding.BinaryUnmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
	encoderTypes = []reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
		reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	}
	timeType  = reflect.TypeFor[time.Time]()
	errorType = reflect.TypeFor[error]()
)

func hasDecoder(t reflect.Type) bool { return implements(t, decoderTypes) }
func hasEncoder(t reflect.Type) bool { return implements(t, encoderTypes) }

// implements says whether t or *t has one of the interfaces. Pointers and
// interfaces are looked through when there is a value.
func implements(t reflect.Type, any []reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	for _, i := range any {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
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
