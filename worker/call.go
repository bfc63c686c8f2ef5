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

// A call is one admitted package. It holds a slot from newCall to complete. Its outcome is in
// fields and not in results of functions, because a task that ends its goroutine makes none of them
// return; deferred functions then finish the call.
type call struct {
	s       *Server
	c       *conn
	typ     *taskType
	id      uint64 // the package's
	taskID  uint64
	async   bool
	cancel  bool // its context ends with its caller
	inline  bool // it runs on its connection's reading goroutine
	dies    bool // the server is killed in its answer
	expire  int64
	started int64 // when it took its slot, CLOCK_MONOTONIC
	meta    map[string]string
	payload []byte
	copied  *buffer // the payload's memory, if it was copied
	record  int     // place among the row's in-flight records; -1: none

	soft, hard int64 // when the limits pass, CLOCK_MONOTONIC; 0: no limit

	softPast, hardPast, callerPast bool  // Server.mu
	long                           bool  // the task has run for longTask; Server.mu
	suspended                      int64 // ns in suspension, which its limits do not count; Server.mu
	prev, next                     *call // Server.mu
	behind                         *call // the next one in the queue of runners

	ctx      taskContext
	ready    bool // decoded, and in time
	task     Task
	value    any
	err      error // of Run
	handled  bool  // the task handled err
	failure  error // of its OnException
	outcome  sharedstate.Outcome
	frame    *buffer     // the answer
	answered atomic.Bool // the goroutine that sets it sends the answer
}

// newCall makes the call for a package that has just got a slot.
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
	c.pending.Add(1)
	s.add(k)
	return k
}

// contextEnd returns when the context ends by itself, 0 if that is unknown.
func (k *call) contextEnd() int64 {
	if k.cancel && k.expire != 0 && (k.soft == 0 || k.expire < k.soft) {
		return k.expire
	}
	return k.soft
}

// keepPayload copies the payload out of the reader's buffer.
func (k *call) keepPayload(owned bool) {
	if owned {
		return
	}
	k.copied = k.s.buffers.get(len(k.payload))
	k.copied.b = append(k.copied.b, k.payload...)
	k.payload = k.copied.b
}

// do prepares the call if that is still to be done, and runs it.
func (k *call) do() {
	if !k.ready {
		k.prepare()
	}
	switch {
	case !k.ready:
	case k.s.isKilled():
		k.complete()
	default:
		k.run()
	}
}

// prepare decodes the payload. It answers a call that cannot run, and an asynchronous one.
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
		k.s.countEnd(k, k.err)
		k.frame = k.fail(
			protocol.StatusIllegal,
			fmt.Sprintf("the payload of %s does not decode: %s", k.typ.name, textOf(k.err)),
		)
		k.complete()
	case k.expire != 0 && sys.Now() >= k.expire:
		k.outcome = sharedstate.ExpiredInSlot
		k.frame = k.fail(protocol.StatusExpired, "the deadline passed while the payload was decoded")
		k.complete()
	default:
		k.ready = true
		if k.async {
			k.respond(k.s.acceptedFrame(k.id, k.taskID))
		}
	}
}

// run runs the task and finishes the call, even if the task ends its goroutine.
func (k *call) run() {
	defer k.finish()
	defer k.handle()
	k.s.cfg.Row.Begin(k.record)
	guard(&k.err, func() { k.value, k.err = k.task.Run(&k.ctx, k.info()) })
}

func (k *call) info() Info {
	return Info{TaskID: k.taskID, WorkerIndex: k.s.cfg.Index, Deadline: k.s.deadline(k.expire), Meta: k.meta}
}

// handle calls the task's OnException.
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
		k.logFailure(slog.LevelWarn, "task panicked, and its OnException returned a result", k.err)
	}
}

// finish turns the task's outcome into an answer.
func (k *call) finish() {
	defer k.complete()
	k.s.countEnd(k, k.err)
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

// report passes a failure that the task did not handle to OnException, and logs it.
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

// complete returns the slot, once, and then sends the answer.
func (k *call) complete() {
	if k.frame == nil {
		k.frame = k.fail(protocol.StatusTaskError, errGoexit.Error())
	}
	if !k.s.isKilled() {
		row := k.s.cfg.Row
		row.Forget(k.record)
		row.Release(k.outcome)
	}
	k.s.remove(k)
	// The context is part of the call, and the task may keep it: release the rest.
	k.task, k.value = nil, nil
	k.respond(k.frame)
}

// respond sends the call's answer, unless one was sent.
func (k *call) respond(b *buffer) {
	if !k.answered.CompareAndSwap(false, true) {
		k.s.buffers.put(b)
		return
	}
	if k.dies {
		b.b = b.b[:len(b.b)/2]
	}
	k.c.out.send(b, k.c.pending.Load() > 2)
	if k.dies {
		k.s.Kill()
	}
	k.c.donePending()
}

func (k *call) fail(status protocol.Status, text string) *buffer {
	return k.s.failureFrame(k.id, status, text, k.taskID)
}

// logFailure logs a failure as one record: with the stack of a panic, and with Run's own error if
// OnException returned another.
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

// guard runs f, which sets *err. If f panics, *err becomes a *PanicError. If f ends the goroutine,
// the caller's deferred functions find errGoexit in *err.
func guard(err *error, f func()) {
	*err = errGoexit
	defer func() {
		if v := recover(); v != nil {
			*err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
}

// textOf returns the text of err, even if its Error method panics.
func textOf(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T whose Error method panics", err)
		}
	}()
	return err.Error()
}
