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

// A Caller hands tasks to a pool. *Task and *Client are Callers.
type Caller interface {
	// Async hands r to a worker and returns its task id once the worker has accepted it.
	// It does not wait for the run.
	Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error)
	// Sync hands r to a worker and waits for what its Run returns.
	Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error)
	// AsyncMany and SyncMany deliver each of rs once. The answers have the order of rs.
	AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome
	SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome
	// Status lists the workers by index.
	Status() []WorkerStatus
}

var _, _ Caller = (*Task)(nil), (*Client)(nil)

// newCall makes a package without a task, whose deadline counts from now.
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

// carry makes call the package that carries r.
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
		call.Payload = func(dst []byte, lent *codec.Lent) ([]byte, error) { return codec.AppendLending(dst, args, lent) }
	}
	return nil
}

// unusable says why no call can be made of ctx and r; "" when one can.
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

// after returns now + d on the clock that all processes of the host share,
// without overflow; 0, which is no deadline, when d <= 0.
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

// deliverer sends the calls of a Task or of a Client.
type deliverer struct {
	client     *client.Client
	registered bool // this program's registry is the pool's
}

func (d deliverer) async(ctx context.Context, timeout time.Duration, r Runner, opts []CallOption) (uint64, error) {
	reply, err := d.one(ctx, protocol.Async, timeout, r, opts)
	return reply.TaskID, err
}

func (d deliverer) sync(ctx context.Context, r Runner, opts []CallOption) (Result, error) {
	reply, err := d.one(ctx, protocol.Sync, defaultSyncTimeout, r, opts)
	return Result{reply.Data}, err
}

func (d deliverer) one(ctx context.Context, typ protocol.Type, timeout time.Duration, r Runner, opts []CallOption) (client.Reply, error) {
	call, err := newCall(typ, optionsOf(timeout, opts))
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

// many delivers the runners that make a call; the others have failed already.
func (d deliverer) many(ctx context.Context, typ protocol.Type, timeout time.Duration, rs []Runner, opts []CallOption) []Outcome {
	blank, err := newCall(typ, optionsOf(timeout, opts))
	if err != nil {
		return none(len(rs), err)
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

// none is the outcome of every one of n calls that cannot be made.
func none(n int, err error) []Outcome {
	outcomes := make([]Outcome, n)
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

func display(name string, r Runner) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%T", r)
}
