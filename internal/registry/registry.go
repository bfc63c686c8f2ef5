// Package registry holds the task types of this program, by name and by type. It is the one
// piece of state that belongs to the process: it is filled before main, or early in it, and
// only read afterwards.
package registry

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/taskd-go/task/worker"
)

var tasks = struct {
	sync.RWMutex
	byName map[string]entry
	byType map[reflect.Type]string
}{byName: map[string]entry{}, byType: map[reflect.Type]string{}}

type entry struct {
	decode worker.Decoder
	typ    reflect.Type // nil for a function
}

// Add makes t, which is nil for a function, a task under name. It reports false when the name
// stands for another type already, or for a function.
func Add(name string, t reflect.Type, d worker.Decoder) bool {
	tasks.Lock()
	defer tasks.Unlock()
	if old, ok := tasks.byName[name]; ok && (t == nil || old.typ != t) {
		return false
	}
	tasks.byName[name] = entry{decode: d, typ: t}
	if t != nil {
		tasks.byType[t] = name
	}
	return true
}

// Named is embedded by a task that says itself under which name it runs, and with what.
type Named struct {
	Name string
	Args any
}

func (n Named) named() Named { return n }

// Find returns what travels of a task: its name, which is "" for a type that nobody added, and
// its arguments. known is false when this program lacks it.
func Find(v any) (name string, args any, known bool) {
	tasks.RLock()
	defer tasks.RUnlock()
	if n, ok := v.(interface{ named() Named }); ok {
		_, known = tasks.byName[n.named().Name]
		return n.named().Name, n.named().Args, known
	}
	name, known = tasks.byType[TypeOf(v)]
	return name, v, known
}

// TypeOf returns the type that v travels as, pointers removed. It panics for nil.
func TypeOf(v any) reflect.Type {
	t := reflect.TypeOf(v)
	if t == nil {
		panic("task: nil is not a task")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Names lists all tasks, sorted.
func Names() []string {
	tasks.RLock()
	defer tasks.RUnlock()
	return slices.Sorted(maps.Keys(tasks.byName))
}

// Lookup returns how a worker finds task types: those in allowed, or all when that is empty. It
// copies what is registered now, so that calls take no lock.
func Lookup(allowed []string) func(name []byte) (worker.Decoder, bool, string) {
	tasks.RLock()
	defer tasks.RUnlock()
	decoders := make(map[string]worker.Decoder, len(tasks.byName))
	for name, e := range tasks.byName {
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
