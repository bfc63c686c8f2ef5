// Package registry holds the task types of this program, by name and by type. Programs fill it
// before main or early in main, and only read it afterwards.
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

// Add registers a task under name. t is its type, nil for a function. It returns false if another
// type or a function has the name.
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

// Named is embedded in a task that carries its name and its arguments itself.
type Named struct {
	Name string
	Args any
}

func (n Named) named() Named { return n }

// Find returns the name of a task and the arguments that travel. The name is "" for a type that was
// not added. known is false if this program has no such task.
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

// TypeOf returns the type of v without pointers. It panics for nil.
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

// Names lists the names of all tasks, sorted.
func Names() []string {
	tasks.RLock()
	defer tasks.RUnlock()
	return slices.Sorted(maps.Keys(tasks.byName))
}

// Lookup returns a function that finds the decoder of a task: one in allowed, or any if allowed is
// empty. It copies the registry, so that the function takes no lock.
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
