package task

import (
	"context"
	"fmt"
	"reflect"

	"github.com/taskd-go/task/worker"
)

// A Func is a function registered as a task. Its methods call it with typed input and output; In
// and Out travel as one msgpack value each. Define makes a Func; calls of the zero Func fail.
type Func[In, Out any] struct{ name string }

// Define registers fn as a task under name, 1 … 255 bytes. Call it for a package-level variable or
// at the beginning of main. It panics if the name is taken or has another length, if fn is nil, and
// if an In or an Out cannot travel: a function, a channel, a struct that has fields and no exported
// one.
//
//	var resize = task.Define("resize", func(ctx context.Context, in Size) (Image, error) { … })
//
// A program without this variable calls the function through Dial and Named("resize", size).
func Define[In, Out any](name string, fn func(context.Context, In) (Out, error)) Func[In, Out] {
	if fn == nil {
		panic(fmt.Sprintf("task: Define(%q): the function is nil", name))
	}
	mustTravel(name, reflect.TypeFor[In]())
	mustTravel(name, reflect.TypeFor[Out]())
	register(name, nil, func(payload []byte) (worker.Task, error) {
		d := &defined[In, Out]{fn: fn}
		if err := decodeArgs(payload, &d.in); err != nil {
			return nil, err
		}
		return running{d}, nil
	})
	return Func[In, Out]{name}
}

type defined[In, Out any] struct {
	fn func(context.Context, In) (Out, error)
	in In
}

func (d *defined[In, Out]) Run(ctx context.Context, _ Info) (any, error) { return d.fn(ctx, d.in) }

// Sync runs the function in a worker of c, as Caller.Sync does, and returns the function's result.
func (f Func[In, Out]) Sync(ctx context.Context, c Caller, in In, opts ...CallOption) (Out, error) {
	return As[Out](c.Sync(ctx, Named(f.name, in), opts...))
}

// Async runs the function in a worker of c, as Caller.Async does, and returns the task's id.
func (f Func[In, Out]) Async(ctx context.Context, c Caller, in In, opts ...CallOption) (uint64, error) {
	return c.Async(ctx, Named(f.name, in), opts...)
}

// SyncMany runs the function once for each of ins. outs[i] and errs[i] belong to ins[i].
func (f Func[In, Out]) SyncMany(
	ctx context.Context,
	c Caller,
	ins []In,
	opts ...CallOption,
) (outs []Out, errs []error) {
	outs, errs = make([]Out, len(ins)), make([]error, len(ins))
	for i, o := range c.SyncMany(ctx, f.runners(ins), opts...) {
		outs[i], errs[i] = As[Out](o.Result, o.Err)
	}
	return outs, errs
}

// AsyncMany delivers the function once for each of ins. ids[i] and errs[i] belong to ins[i].
func (f Func[In, Out]) AsyncMany(
	ctx context.Context,
	c Caller,
	ins []In,
	opts ...CallOption,
) (ids []uint64, errs []error) {
	ids, errs = make([]uint64, len(ins)), make([]error, len(ins))
	for i, o := range c.AsyncMany(ctx, f.runners(ins), opts...) {
		ids[i], errs[i] = o.TaskID, o.Err
	}
	return ids, errs
}

func (f Func[In, Out]) runners(ins []In) []Runner {
	rs := make([]Runner, len(ins))
	for i, in := range ins {
		rs[i] = Named(f.name, in)
	}
	return rs
}
