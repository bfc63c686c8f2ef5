package queuefixture

import (
	"context"
	"errors"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// Envelope returns a job of a type that carries a name.
func Envelope(jobType, name string) job.Envelope {
	e, err := job.New(jobType, map[string]string{"name": name}, nil, job.RetryPolicy{})
	if err != nil {
		panic(err) // the tests' own types are not empty
	}
	return e
}

// NameOf returns the name that a job carries.
func NameOf(e job.Envelope) string {
	var p struct {
		Name string `json:"name"`
	}
	_ = e.Bind(&p)
	return p.Name
}

// Answers handles jobs of the type "plain" with what the function says.
func Answers(fn func(ctx context.Context, e job.Envelope) job.Result) []job.Handler {
	return []job.Handler{job.Func("plain", fn)}
}

// Always handles jobs of the type "plain" with one answer.
func Always(r job.Result) []job.Handler {
	return Answers(func(context.Context, job.Envelope) job.Result { return r })
}

// Fails is the handler of a Script whose jobs fail.
func Fails(context.Context, string) error { return errors.New("failed") }

// Classed returns an error with a class of its own.
func Classed(class, text string) error { return classed{class, text} }

type classed struct{ class, text string }

func (c classed) Error() string { return c.text }
func (c classed) Class() string { return c.class }

// Typed returns a job of a type that does nothing.
func Typed(jobType string) queue.Job { return typed{jobType} }

type typed struct{ jobType string }

func (j typed) JobType() string            { return j.jobType }
func (typed) Handle(context.Context) error { return nil }

// A Record keeps the names of the jobs of the type "plain" that ran.
type Record struct{ Names chan string }

// NewRecord returns an empty Record.
func NewRecord() Record { return Record{make(chan string, 10_000)} }

// Handler returns the handler that keeps the names.
func (r Record) Handler() job.Handler {
	return job.Func("plain", func(_ context.Context, e job.Envelope) job.Result {
		r.Names <- NameOf(e)
		return job.Success()
	})
}

// Take returns the names since the last call.
func (r Record) Take() (names []string) {
	for {
		select {
		case name := <-r.Names:
			names = append(names, name)
		default:
			return names
		}
	}
}
