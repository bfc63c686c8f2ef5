package queue

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/taskd-go/task/job"
)

// A Job is a Go value that is pushed as its JSON and rebuilt from it by the handler that HandlerFor makes. Its
// exported fields are its arguments: a JSON object, and no handles or connections.
//
// It may have further methods:
//
//	Tries() int                                    how often it runs in all, the first time included
//	Timeout() time.Duration                        its time limit; 0: the worker's, negative: none
//	Backoff(attempt int) time.Duration             the wait after the attempt-th failure, from 1; negative: none
//	Failed(ctx context.Context, err error)         told after it was stored as a dead letter
//	Middleware() []job.Middleware                  layers around it, inside the Runner's
//
// Tries and Timeout are asked when the job is pushed and stand in its row; the options Tries and Timeout go before
// them. Backoff goes before the option Backoff, except after a lapsed lease. It is asked where the job ran; after a
// panic, a time limit that the job ignored or the loss of its process it is asked in the process that supervises the
// job, where Failed and Middleware run too. Failed has 30 s, or until a Shutdown runs out of time. A panic of Failed or
// Backoff is logged.
type Job interface {
	// JobType is the name under which the job's handler is found. It must not depend on the value.
	JobType() string
	// Handle runs the job. nil is success; an error that job.Permanent marked is not tried again.
	Handle(ctx context.Context) error
}

type (
	trier  interface{ Tries() int }
	timer  interface{ Timeout() time.Duration }
	backer interface {
		Backoff(attempt int) time.Duration
	}
	failer interface {
		Failed(ctx context.Context, err error)
	}
	layered interface{ Middleware() []job.Middleware }
)

// HandlerFor is the handler of the jobs of type J, which may be a pointer. A payload that does not fit J is dead at
// once with the reason "decode".
func HandlerFor[J Job]() job.Handler { return handlerFor[J]{} }

type handlerFor[J Job] struct{}

// A supervised handler has more to say than what to run: a worker asks it in its own process, wherever it runs.
type supervised interface {
	layers(e job.Envelope) []job.Middleware
	backoff(e job.Envelope) (d time.Duration, ok bool)
	failed(ctx context.Context, e job.Envelope, err error)
}

// blank is a J whose methods can be called: for a pointer type one that points to something.
func blank[J Job]() J {
	var j J
	if t := reflect.TypeFor[J](); t.Kind() == reflect.Pointer {
		j = reflect.New(t.Elem()).Interface().(J)
	}
	return j
}

func (handlerFor[J]) Types() []string { return []string{blank[J]().JobType()} }

func (handlerFor[J]) Handle(ctx context.Context, e job.Envelope) job.Result {
	j, err := bound[J](e)
	if err != nil {
		return job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: err})
	}
	result := job.FromError(j.Handle(ctx))
	b, ok := any(j).(backer)
	if !ok || result.Kind() != job.KindRetry || e.Attempt >= e.MaxAttempts {
		return result // the job is not asked where its answer would not count
	}
	return job.RetryAfter(result.Err(), b.Backoff(e.Attempt))
}

func (handlerFor[J]) layers(e job.Envelope) []job.Middleware {
	if l, ok := boundAs[J, layered](e); ok {
		return l.Middleware()
	}
	return nil
}

func (handlerFor[J]) backoff(e job.Envelope) (d time.Duration, ok bool) {
	b, ok := boundAs[J, backer](e)
	if !ok {
		return 0, false
	}
	return b.Backoff(e.Attempt), true
}

func (handlerFor[J]) failed(ctx context.Context, e job.Envelope, failure error) {
	if f, ok := boundAs[J, failer](e); ok {
		f.Failed(ctx, failure)
	}
}

// boundAs is the job as something that not every job is; it decodes only what is.
func boundAs[J Job, T any](e job.Envelope) (t T, ok bool) {
	var none J
	if t, ok = any(none).(T); !ok {
		return t, false
	}
	j, err := bound[J](e)
	if err != nil {
		return t, false
	}
	t, ok = any(j).(T)
	return t, ok
}

func bound[J Job](e job.Envelope) (J, error) {
	j := blank[J]()
	if err := e.Bind(&j); err != nil {
		return j, err
	}
	if v := reflect.ValueOf(j); v.Kind() == reflect.Pointer && v.IsNil() {
		return j, fmt.Errorf("queue: payload of %s is null", e.JobID)
	}
	return j, nil
}
