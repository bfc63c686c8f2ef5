package queue

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/taskd-go/task/job"
)

// A Job is a Go value that a push stores as JSON and the handler of HandlerFor decodes again. So
// its exported fields are the arguments of the job. They must make a JSON object or array, and
// cannot be handles or connections.
//
// A Job may have further methods:
//
//	Tries() int                                    how often it may run, including the first time
//	Timeout() time.Duration                        its time limit; 0: the worker's, negative: none
//	Backoff(attempt int) time.Duration             the wait after the attempt-th failure, from 1; negative: none
//	Failed(ctx context.Context, err error)         called after the job became a dead letter
//	Middleware() []job.Middleware                  layers around it, inside the Runner's
//
// A push calls Tries and Timeout and stores what they return; the options Tries and Timeout
// override them. Backoff overrides the option Backoff, except after a lapsed lease. It is called in
// the process that ran the job. After a panic, after a time limit that the job ignored, or if that
// process is gone, it is called in the worker's process. Failed and Middleware always run in the
// worker's process. The context of Failed ends after 30 s, or when the worker interrupts its jobs.
// A panic of Failed or Backoff is logged.
type Job interface {
	// JobType returns the name under which a worker finds the job's handler. It must not depend on
	// the value.
	JobType() string
	// Handle runs the job. After an error it runs again, unless job.Permanent marked the error.
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

// HandlerFor returns the handler of the jobs of type J, which may be a pointer type. A payload that
// does not fit J makes the job a dead letter at once, with the reason "decode".
func HandlerFor[J Job]() job.Handler { return handlerFor[J]{} }

type handlerFor[J Job] struct{}

// A supervised handler has methods that the worker's process calls, wherever the handler runs.
type supervised interface {
	layers(e job.Envelope) []job.Middleware
	backoff(e job.Envelope) (d time.Duration, ok bool)
	failed(ctx context.Context, e job.Envelope, err error)
}

// blank returns a J whose methods can be called: for a pointer type one that points to a zero
// value.
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
		return result // the wait would not count
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

// boundAs decodes the job and returns it as a T, or returns false if J is no T.
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
