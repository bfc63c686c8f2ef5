package task

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
)

// newCall returns a call without a task. Its deadline counts from now.
func newCall(typ protocol.Type, o callOptions) (client.Call, error) {
	if wrong := o.check(); wrong != "" {
		return client.Call{}, refused(ErrIllegalPackage, nil, "%s", wrong)
	}
	return client.Call{
		Type:     typ,
		Meta:     o.meta,
		Soft:     o.soft,
		Hard:     o.hard,
		Deadline: after(o.timeout),
		Wait:     o.wait,
		Cancel:   o.cancel,
	}, nil
}

// carry puts r into call. If registered is true, r must be in this program's registry.
func carry(ctx context.Context, call *client.Call, r Runner, registered bool) error {
	if wrong := unusable(ctx, r); wrong != "" {
		return refused(ErrIllegalPackage, nil, "%s", wrong)
	}
	name, args, known := registry.Find(r)
	if registered && !known {
		return refused(ErrIllegalPackage, nil, "task %s is not registered in this program", display(name, r))
	}
	if name == "" {
		return refused(ErrIllegalPackage, nil, "task %s is not registered in this program: use Named", display(name, r))
	}
	call.Task = name
	if args != nil {
		call.Payload = func(dst []byte, lent *codec.Lent) ([]byte, error) {
			return codec.AppendLending(dst, args, lent)
		}
	}
	return nil
}

// unusable returns why ctx and r make no call, "" if they make one.
func unusable(ctx context.Context, r Runner) string {
	if ctx == nil {
		return "the context is nil"
	}
	if r == nil {
		return "nil is not a task"
	}
	if n, ok := r.(named); ok && n.Name == "" {
		return "the task has no name; a Func is made with Define"
	}
	if v := reflect.ValueOf(r); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Sprintf("nil %T is not a task", r)
	}
	return ""
}

// after returns now + d on the clock that all processes of the host share, at most the largest
// instant. For d <= 0 it returns 0: no deadline.
func after(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	now := sys.Now()
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d)
}

// A deliverer sends calls to one run of a pool.
type deliverer struct {
	client     *client.Client
	registered bool // the workers have this program's registry
}

func (d deliverer) one(ctx context.Context, typ protocol.Type, o callOptions, r Runner) (client.Reply, error) {
	call, err := newCall(typ, o)
	if err != nil {
		return client.Reply{}, err
	}
	if err := carry(ctx, &call, r, d.registered); err != nil {
		return client.Reply{}, err
	}
	reply, failure := d.client.Do(ctx, &call)
	if failure != nil {
		return client.Reply{}, failed(failure)
	}
	return reply, nil
}

// many delivers rs. Runners that make no call fail at once.
func (d deliverer) many(ctx context.Context, typ protocol.Type, o callOptions, rs []Runner) []Outcome {
	blank, err := newCall(typ, o)
	if err != nil {
		return failAll(len(rs), err)
	}
	outcomes := make([]Outcome, len(rs))
	calls := make([]client.Call, 0, len(rs))
	place := make([]int, 0, len(rs))
	for i, r := range rs {
		call := blank
		if err := carry(ctx, &call, r, d.registered); err != nil {
			outcomes[i].Err = err
			continue
		}
		calls = append(calls, call)
		place = append(place, i)
	}
	if len(calls) == 0 { // ctx may be nil
		return outcomes
	}
	replies, failures := d.client.Many(ctx, calls)
	for n, i := range place {
		if failures[n] != nil {
			outcomes[i] = Outcome{TaskID: failures[n].TaskID, Err: failed(failures[n])}
			continue
		}
		outcomes[i] = Outcome{TaskID: replies[n].TaskID, Result: Result{replies[n].Data}}
	}
	return outcomes
}

func display(name string, r Runner) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%T", r)
}
