package pooljob

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/textcut"
	"github.com/taskd-go/task/job"
)

const maxText = 16 << 10 // bytes of an error's text and of a stack

// A worker runs jobs in a worker process.
type worker struct{ handlers *job.Registry }

// An answer is a job's result on its way back.
type answer struct {
	Kind   job.Kind
	HasErr bool
	Text   string     // of the error
	Class  string     // of the error
	Reason job.Reason // of the error, if it has one
	Stack  string     // of a panic
	Given  bool
	Delay  time.Duration

	CallerEnded bool // before the handler returned
}

// A remoteError stands for a handler's error in the process that called the pool.
type remoteError struct{ text, class string }

func (e *remoteError) Error() string { return e.text }

// Class implements what job.ErrorClass asks for: the class of the handler's own error.
func (e *remoteError) Class() string { return e.class }

// errGivenUp is the error of a job that its caller has given up. The caller no longer waits for it.
var errGivenUp = errors.New("the caller has given this job up")

func (w worker) run(ctx context.Context, r request) (answer, error) {
	release, ok := lockForRun(r.RunLock)
	if !ok {
		return answer{}, errGivenUp
	}
	defer release()
	e, err := job.Decode([]byte(r.Envelope))
	if err != nil {
		return answerOf(job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: err})), nil
	}
	h, err := w.handlers.Require(e.JobType)
	if err != nil { // this worker is of an older build than the caller
		return answerOf(job.Defer(notRunning).WithErr(err)), nil
	}
	a := answerOf(interrupted(ctx, handle(ctx, h, e)))
	a.CallerEnded = context.Cause(ctx) == task.ErrCallerGone
	return a, nil
}

func handle(ctx context.Context, h job.Handler, e job.Envelope) (result job.Result) {
	defer func() {
		if v := recover(); v != nil {
			result = job.Retry(&job.DeadError{Reason: job.ReasonPanic, Err: &job.PanicError{Value: v, Stack: debug.Stack()}})
		}
	}()
	return h.Handle(ctx, e)
}

// interrupted returns result, unless the handler returned the error of ctx: at the soft limit the
// job has timed out; at the end of its worker or its caller it is deferred, which costs no attempt.
func interrupted(ctx context.Context, result job.Result) job.Result {
	cause := context.Cause(ctx)
	if result.Kind() != job.KindRetry || cause == nil ||
		!errors.Is(result.Err(), ctx.Err()) && !errors.Is(result.Err(), cause) {
		return result
	}
	if cause == task.ErrSoftLimit {
		return result.WithErr(&job.DeadError{Reason: job.ReasonTimeout, Err: fmt.Errorf("%w: %w", cause, result.Err())})
	}
	return job.Defer(0).WithErr(&job.DeadError{Reason: job.ReasonInterrupted, Err: cause})
}

func answerOf(result job.Result) answer {
	a := answer{Kind: result.Kind()}
	a.Delay, a.Given = result.Delay()
	err := result.Err()
	if err == nil {
		return a
	}
	a.HasErr, a.Text, a.Class = true, cut(err.Error()), cut(job.ErrorClass(err))
	var coded *job.DeadError
	if errors.As(err, &coded) {
		a.Reason = coded.Reason
	}
	var panicked *job.PanicError
	if errors.As(err, &panicked) {
		a.Stack = cut(string(panicked.Stack))
	}
	return a
}

// cut shortens text to maxText bytes and drops what is not UTF-8.
func cut(text string) string { return strings.ToValidUTF8(textcut.To(text, maxText), "") }

// result returns what the handler returned, except for the types of its errors.
func (a answer) result() job.Result {
	switch err := a.err(); a.Kind {
	case job.KindSuccess:
		return job.Success()
	case job.KindFail:
		return job.Fail(err)
	case job.KindDiscard:
		return job.Discard(a.Text)
	case job.KindSkip:
		return job.Skip(a.Text)
	case job.KindDefer:
		return job.Defer(a.Delay).WithErr(err)
	default:
		if a.Given {
			return job.RetryAfter(err, a.Delay)
		}
		return job.Retry(err)
	}
}

func (a answer) err() error {
	if !a.HasErr {
		return nil
	}
	err := error(&remoteError{a.Text, a.Class})
	if a.Stack != "" {
		err = &job.PanicError{Value: a.Text, Stack: []byte(a.Stack)}
	}
	if a.Reason != "" {
		err = &job.DeadError{Reason: a.Reason, Err: err}
	}
	return err
}
