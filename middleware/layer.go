package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
)

// storeDelay is how long a job is deferred because its store failed.
const storeDelay = 5 * time.Second

// A layer is what all layers with a Store have in common.
type layer struct {
	options
	name  string // in events and errors, and at the beginning of its keys
	store Store
}

func newLayer(name string, s Store, o options, opts []Option) *layer {
	for _, set := range opts {
		set(&o)
	}
	return &layer{options: o, name: name, store: s}
}

// A guarded is one job at one layer.
type guarded struct {
	*layer
	job job.Envelope
	key string // "": none
}

func (l *layer) guard(e job.Envelope) guarded {
	key := e.JobType
	if l.options.key != nil {
		key = l.options.key(e)
	}
	if key != "" {
		key = l.name + ":" + key
	}
	return guarded{l, e, key}
}

func (g *guarded) report(ev Event) {
	if g.onEvent == nil {
		return
	}
	ev.Layer, ev.Key = g.name, g.key
	ev.JobID, ev.JobType, ev.Attempt = g.job.JobID, g.job.JobType, g.job.Attempt
	g.onEvent(ev)
}

func (g *guarded) noKey() job.Result {
	r := job.Fail(&KeyError{Layer: g.name, JobType: g.job.JobType})
	g.report(Event{Kind: KeyMissing, Answer: r.Kind(), Err: r.Err()})
	return r
}

func (g *guarded) refuse(wait time.Duration, text string) job.Result {
	err := &RefusedError{Layer: g.name, Key: g.key, Wait: wait, text: text}
	r := g.refused(err)
	g.report(Event{Kind: Refused, Answer: r.Kind(), Wait: wait, Err: err})
	return r
}

func (g *guarded) storeFailed(op string, err error) job.Result {
	r := job.Defer(storeDelay).WithErr(g.storeError(op, err))
	g.report(Event{Kind: StoreFailed, Answer: r.Kind(), Err: r.Err()})
	return r
}

func (g *guarded) storeError(op string, err error) error {
	return fmt.Errorf("%s %q: %w", op, g.key, err)
}

// reportFailure reports an error of the store after the job has run, which does not change the
// job's result.
func (g *guarded) reportFailure(op string, err error) {
	if err != nil {
		g.report(Event{Kind: StoreFailed, Err: g.storeError(op, err)})
	}
}

// stopped reports whether a handler returned err because ctx was cancelled, which a time limit does
// not do.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.Canceled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

func deferred(err *RefusedError) job.Result { return job.Defer(err.Wait).WithErr(err) }
func skipped(err *RefusedError) job.Result  { return job.Skip("").WithErr(err) }
