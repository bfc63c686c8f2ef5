package task

import (
	"context"
	"fmt"
	"reflect"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/worker"
)

// Register registers the type of r as a task under its import path and type name, such as
// "example.org/shop/mail.Send", or "main.Send" in package main. T and *T are one type. Call it in
// an init function or at the beginning of main, so that every worker has the same registry. It
// panics if another type has the name, if the type has no name, and if its values cannot travel: a
// function, a channel, a struct that has fields and no exported one.
func Register(r Runner) {
	t := registry.TypeOf(r)
	if t.Name() == "" {
		panic(fmt.Sprintf("task: Register(%T): the type has no name; use RegisterName", r))
	}
	RegisterName(t.PkgPath()+"."+t.Name(), r)
}

// RegisterName registers the type of r under name, 1 … 255 bytes. Otherwise it does what Register
// does.
func RegisterName(name string, r Runner) {
	if _, ok := r.(named); ok {
		panic(
			fmt.Sprintf(
				"task: %q cannot be registered by a Named: that is how a program without the task's type calls it",
				name,
			),
		)
	}
	t := registry.TypeOf(r)
	mustTravel(name, t)
	register(name, t, func(payload []byte) (worker.Task, error) {
		v := reflect.New(t)
		if err := decodeArgs(payload, v.Interface()); err != nil {
			return nil, err
		}
		return running{v.Interface().(Runner)}, nil
	})
}

func mustTravel(name string, t reflect.Type) {
	if err := codec.Check(t); err != nil {
		panic(fmt.Sprintf("task: %q cannot be registered with the type %s: %v", name, t, err))
	}
}

func register(name string, t reflect.Type, d worker.Decoder) {
	if name == "" || len(name) > 255 {
		panic(fmt.Sprintf("task: the name of a task has 1 to 255 bytes, %q has %d", name, len(name)))
	}
	if !registry.Add(name, t, d) {
		panic(fmt.Sprintf("task: the name %q is registered twice, for two different tasks", name))
	}
}

func decodeArgs(payload []byte, v any) error {
	if len(payload) == 1 && payload[0] == msgpackNil[0] {
		return nil
	}
	return codec.Decode(payload, v)
}

// Named returns a task that is known by its name only, for callers that do not have its type: a
// command line, another program. It runs in a worker and not here.
//
// args are the task's arguments; nil means none. A registered Runner reads its fields from a map by
// field name, or from a struct: upper and lower case differ, an unknown key is ignored, and a field
// without a key is zero. A function of Define reads one value.
func Named(name string, args any) Runner { return named{registry.Named{Name: name, Args: args}} }

type named struct{ registry.Named }

func (n named) Run(context.Context, Info) (any, error) {
	return nil, fmt.Errorf("task %q is known by its name only and runs in a worker", n.Name)
}
