package task

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/worker"
)

// registry knows the program's task types by name and by type. It is filled
// before main, or early in it, and only read afterwards.
var registry = struct {
	sync.RWMutex
	byName map[string]entry
	byType map[reflect.Type]string
}{byName: map[string]entry{}, byType: map[reflect.Type]string{}}

type entry struct {
	decode worker.Decoder
	typ    reflect.Type // nil for a function registered by Define
}

// Register makes r's type a task under its import path and type name, such as
// "example.org/shop/mail.Send", or "main.Send" in package main. T and *T are
// one type. It panics when the name stands for another type already, and when
// the type has no name. It belongs in an init function or at the beginning of
// main, so that every worker has the same registry.
func Register(r Runner) {
	t := structType(r)
	if t.Name() == "" {
		panic(fmt.Sprintf("task: Register(%T): the type has no name; use RegisterName", r))
	}
	RegisterName(t.PkgPath()+"."+t.Name(), r)
}

// RegisterName is Register with a name of the program's own, 1 … 255 bytes.
func RegisterName(name string, r Runner) {
	t := structType(r)
	register(name, t, func(payload []byte) (worker.Task, error) {
		v := reflect.New(t)
		if err := decodeArgs(payload, v.Interface()); err != nil {
			return nil, err
		}
		return running{v.Interface().(Runner)}, nil
	})
}

func register(name string, t reflect.Type, d worker.Decoder) {
	if name == "" || len(name) > 255 {
		panic(fmt.Sprintf("task: the name of a task has 1 to 255 bytes, %q has %d", name, len(name)))
	}
	registry.Lock()
	defer registry.Unlock()
	if old, ok := registry.byName[name]; ok && (t == nil || old.typ != t) {
		panic(fmt.Sprintf("task: the name %q is registered twice, for two different tasks", name))
	}
	registry.byName[name] = entry{decode: d, typ: t}
	if t != nil {
		registry.byType[t] = name
	}
}

// structType returns the type that r travels as, pointers removed.
func structType(r Runner) reflect.Type {
	t := reflect.TypeOf(r)
	if t == nil {
		panic("task: nil is not a task")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func decodeArgs(payload []byte, v any) error {
	if len(payload) == 1 && payload[0] == msgpackNil[0] {
		return nil
	}
	return codec.Decode(payload, v)
}

func registeredNames() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.byName))
}

// lookup returns how a worker finds task types: those in allowed, or all when
// that is empty. It copies the registry, so that calls take no lock.
func lookup(allowed []string) func(name []byte) (worker.Decoder, bool, string) {
	registry.RLock()
	defer registry.RUnlock()
	decoders := make(map[string]worker.Decoder, len(registry.byName))
	for name, e := range registry.byName {
		if len(allowed) == 0 || slices.Contains(allowed, name) {
			decoders[name] = e.decode
		}
	}
	return func(name []byte) (worker.Decoder, bool, string) {
		if d, ok := decoders[string(name)]; ok {
			return d, true, ""
		}
		if len(allowed) > 0 {
			return nil, false, fmt.Sprintf("task %q is not in Config.Tasks", name)
		}
		return nil, false, fmt.Sprintf("task %q is not registered", name)
	}
}

// Named is a task known by its name only, for callers that do not have its
// type: a command line, another program. args is what the task's fields are
// read from, usually a struct or a map; nil: no arguments. It cannot run here.
func Named(name string, args any) Runner { return named{name, args} }

type named struct {
	name string
	args any
}

func (n named) Run(context.Context, Info) (any, error) {
	return nil, fmt.Errorf("task %q is known by its name only and runs in a worker", n.name)
}

// nameAndArgs returns what travels of r. known is false when this program's
// registry lacks it.
func nameAndArgs(r Runner) (name string, args any, known bool) {
	registry.RLock()
	defer registry.RUnlock()
	if n, ok := r.(named); ok {
		_, known = registry.byName[n.name]
		return n.name, n.args, known
	}
	t := structType(r)
	name, known = registry.byType[t]
	return name, r, known
}
