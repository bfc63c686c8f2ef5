package codec

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// A plan says how values of a Go type are decoded, and whether their encoding needs checks.
type plan struct {
	typ       reflect.Type
	kind      reflect.Kind
	decodes   bool // it has a decoder of its own
	encodes   bool // it has an encoder of its own
	own       bool // it, or a type inside it, has one
	open      bool // its values may nest without bound, because it contains an interface or itself
	plain     bool // isPlain
	key, elem *plan
	list      []*field // a struct's, in order
	fields    map[string]*field
	err       error // set in plans that planOf returns: why the type is not supported
}

// plans caches the results of planOf. The key is the address of the type, because a lookup of the
// type itself takes three times as long. The map is copied when it grows.
var plans struct {
	sync.Mutex
	known atomic.Pointer[map[uintptr]*plan]
}

func init() { plans.known.Store(new(map[uintptr]*plan)) }

func planOf(t reflect.Type) *plan {
	address := reflect.ValueOf(t).Pointer()
	if p := (*plans.known.Load())[address]; p != nil {
		return p
	}
	b := builder{seen: make(map[reflect.Type]*plan), done: make(map[*plan]bool)}
	p := b.plan(t)
	p.err = b.err
	plans.Lock()
	defer plans.Unlock()
	known := maps.Clone(*plans.known.Load())
	if known == nil {
		known = make(map[uintptr]*plan)
	}
	known[address] = p
	plans.known.Store(&known)
	return p
}

// A builder makes the plans of a type and of its parts.
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
	p.plain = p.isPlain()
	b.done[p] = true
	return p
}

// parts makes the plans of the parts of p.
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

// checkPointer sets an error for a type that is only a pointer to itself.
func (b *builder) checkPointer(t reflect.Type) {
	first := t
	for t.Kind() == reflect.Pointer {
		if t = t.Elem(); t == first {
			b.err = fmt.Errorf("type %s is only a pointer to itself", t)
			return
		}
	}
}

// Interfaces of types that decode or encode themselves, and types that are treated by more than
// their kind.
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

// implements reports whether t or *t has one of the interfaces. It returns false for pointers and
// interfaces, whose values are examined instead.
func implements(t reflect.Type, interfaces []reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	for _, i := range interfaces {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}
