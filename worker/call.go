package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A call is one admitted package: it holds a slot from newCall to settle. What came of it is
// kept here and not in results of functions: a task that ends its goroutine lets none of them
// return, and deferred functions finish the call.
type call struct {
	s       *Server
	c       *conn
	typ     *taskType
	id      uint64 // the package's
	taskID  uint64
	async   bool
	cancel  bool // its context ends with its caller
	inline  bool // it runs on its connection's reading goroutine
	dies    bool // the server dies of its answer
	expire  int64
	started int64 // when it took its slot, CLOCK_MONOTONIC
	meta    map[string]string
	payload []byte
	copied  *buffer // payload's memory, when it had to be copied
	record  int     // place among the row's in-flight records; -1: none

	soft, hard int64 // when the limits pass, CLOCK_MONOTONIC; 0: none

	softPast, hardPast, callerPast bool  // Server.mu
	long                           bool  // it has run for longTask; Server.mu
	forgiven                       int64 // ns in which it could not run and which its limits do not count; Server.mu
	prev, next                     *call // Server.mu
	behind                         *call // in the queue of runners

	ctx      taskContext
	ready    bool // decoded, and in time
	task     Task
	value    any
	err      error // Run's
	handled  bool  // the task answered for err
	failure  error // what it could not settle
	outcome  sharedstate.Outcome
	frame    *buffer     // the answer
	answered atomic.Bool // by whoever sets it
}

// newCall makes the call of a package whose slot was just taken.
func (c *conn) newCall(p *protocol.Package, typ *taskType, now int64, fault Fault) *call {
	s := c.s
	k := &call{
		s: s, c: c, typ: typ,
		id:      p.ID,
		taskID:  s.cfg.Table.NextTaskID(),
		async:   p.Type == protocol.Async,
		expire:  p.Expire,
		started: now,
		meta:    p.Meta,
		payload: p.Payload,
		soft:    limitEnd(now, s.cfg.SoftTimeLimit, p.Soft),
		hard:    limitEnd(now, s.cfg.TimeLimit, p.Hard),
		outcome: sharedstate.Failed,
		dies:    fault == DieInAnswer,
	}
	if k.meta != nil {
		_, k.cancel = k.meta[protocol.MetaCancel]
		maps.DeleteFunc(k.meta, func(key, _ string) bool { return strings.HasPrefix(key, protocol.MetaReserved) })
	}
	k.inline = p.Alone && !k.cancel && !k.async
	k.ctx.draining = s.draining
	k.ctx.deadline = s.deadline(k.contextEnd())
	k.record = s.cfg.Row.Record(k.taskID, k.id, typ.name, now)
	s.cfg.Row.ConnRead(c.place, k.id)
	c.owed.Add(1)
	s.add(k)
	return k
}

// contextEnd returns when the context ends by itself; 0: not known.
func (k *call) contextEnd() int64 {
	if k.cancel && k.expire != 0 && (k.soft == 0 || k.expire < k.soft) {
		return k.expire
	}
	return k.soft
}

// keepPayload makes the payload outlive the reader's buffer.
func (k *call) keepPayload(owned bool) {
	if owned {
		return
	}
	k.copied = k.s.buffers.get(len(k.payload))
	k.copied.b = append(k.copied.b, k.payload...)
	k.payload = k.copied.b
}

// do takes the call from where it is to its end.
func (k *call) do() {
	if !k.ready {
		k.prepare()
	}
	switch {
	case !k.ready:
	case k.s.isKilled():
		k.settle()
	default:
		k.run()
	}
}

// prepare decodes the payload. It answers what cannot run, and what is asynchronous.
func (k *call) prepare() {
	defer k.prepared()
	guard(&k.err, func() { k.task, k.err = k.typ.decode(k.payload) })
}

func (k *call) prepared() {
	k.s.buffers.put(k.copied)
	k.payload, k.copied = nil, nil
	if k.err == nil && k.task == nil {
		k.err = errors.New("its decoder made no task")
	}
	switch {
	case k.err != nil:
		if panicIn(k.err) != nil {
			k.logFailure(slog.LevelError, "the decoder of the task panicked", k.err)
		}
		k.s.judge(k, k.err)
		k.frame = k.fail(protocol.StatusIllegal, fmt.Sprintf("the payload of %s does not decode: %s", k.typ.name, textOf(k.err)))
		k.settle()
	case k.expire != 0 && sys.Now() >= k.expire:
		k.outcome = sharedstate.ExpiredInSlot
		k.frame = k.fail(protocol.StatusExpired, "the deadline passed while the payload was decoded")
		k.settle()
	default:
		k.ready = true
		if k.async {
			k.respond(k.s.acceptedFrame(k.id, k.taskID))
		}
	}
}

// run runs the task and finishes the call, also when the task ends its goroutine.
func (k *call) run() {
	defer k.finish()
	defer k.handle()
	k.s.cfg.Row.Begin(k.record)
	guard(&k.err, func() { k.value, k.err = k.task.Run(&k.ctx, k.info()) })
}

func (k *call) info() Info {
	return Info{TaskID: k.taskID, WorkerIndex: k.s.cfg.Index, Deadline: k.s.deadline(k.expire), Meta: k.meta}
}

// handle lets the task answer for its failure.
func (k *call) handle() {
	if k.err == nil {
		return
	}
	guard(&k.failure, func() {
		k.value, k.handled, k.failure = k.task.OnException(&k.ctx, k.err, k.info())
	})
	switch {
	case k.failure == nil && !k.handled:
		k.failure = k.err
	case k.failure == nil && panicIn(k.err) != nil:
		k.logFailure(slog.LevelWarn, "task panicked, and settled it", k.err)
	}
}

// finish turns what came of the task into an answer.
func (k *call) finish() {
	defer k.settle()
	k.s.judge(k, k.err)
	if k.failure != nil {
		k.frame = k.fail(protocol.StatusTaskError, textOf(k.failure))
		k.report()
		return
	}
	if k.async {
		k.value = nil
	}
	var whole bool
	if k.frame, whole = k.resultFrame(); whole && k.err == nil {
		k.outcome = sharedstate.Succeeded
	}
}

// report tells the pool of a failure that the task did not settle.
func (k *call) report() {
	if k.s.isKilled() {
		return
	}
	what := "task failed"
	if panicIn(k.failure) != nil {
		what = "task panicked"
	}
	k.logFailure(slog.LevelError, what, k.failure)
	if k.s.cfg.OnException == nil {
		return
	}
	var err error
	guard(&err, func() {
		k.s.cfg.OnException(Failure{TaskID: k.taskID, Task: k.typ.name, Err: k.failure, Text: textOf(k.failure)})
		err = nil
	})
	if err != nil {
		k.logFailure(slog.LevelError, "OnException failed", err)
	}
}

// settle gives the slot back, once, and only then answers.
func (k *call) settle() {
	if k.frame == nil {
		k.frame = k.fail(protocol.StatusTaskError, errGoexit.Error())
	}
	if !k.s.isKilled() {
		row := k.s.cfg.Row
		row.Forget(k.record)
		row.Release(k.outcome)
	}
	k.s.remove(k)
	// The context, which the task may keep, is part of the call: let the rest go.
	k.task, k.value = nil, nil
	k.respond(k.frame)
}

// respond sends the call's answer, if nobody has sent one.
func (k *call) respond(b *buffer) {
	if !k.answered.CompareAndSwap(false, true) {
		k.s.buffers.put(b)
		return
	}
	if k.dies {
		b.b = b.b[:len(b.b)/2]
	}
	k.c.out.send(b, k.c.owed.Load() > 2)
	if k.dies {
		k.s.Kill()
	}
	k.c.pay()
}

func (k *call) fail(status protocol.Status, text string) *buffer {
	return k.s.failureFrame(k.id, status, text, k.taskID)
}

// logFailure makes one record of a failure: with the stack where it is a panic, and with Run's own
// error where a handler has put another in its place.
func (k *call) logFailure(level slog.Level, what string, err error) {
	attrs := []any{"worker", k.s.cfg.Index, "task", k.typ.name, "id", k.taskID, "err", textOf(err)}
	if k.err != nil && textOf(k.err) != textOf(err) {
		attrs = append(attrs, "first", textOf(k.err))
	}
	for _, e := range []error{err, k.err} {
		if p := panicIn(e); p != nil {
			attrs = append(attrs, "stack", string(p.Stack))
			break
		}
	}
	k.s.log.Log(context.Background(), level, what, attrs...)
}

// guard runs f, which sets *err. A panic in it becomes a *PanicError there; when f ends the
// goroutine, errGoexit stays there for the deferred functions of the caller.
func guard(err *error, f func()) {
	*err = errGoexit
	defer func() {
		if v := recover(); v != nil {
			*err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
}

// textOf returns err's words, also when its Error method panics.
func textOf(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T whose Error method panics", err)
		}
	}()
	return err.Error()
}
